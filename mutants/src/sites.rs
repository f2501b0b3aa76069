//! Where a source file can be changed, and into what.
//!
//! The text is never printed anew from its syntax tree: a site is a range of bytes, so what is not changed stays as written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, ReturnType, Stmt, Type, UnOp};

/// A place that can be changed.
#[derive(Clone, Debug)]
pub struct Site {
    /// The bytes it is.
    pub range: Range<usize>,
    /// What of the language it is.
    pub kind: Kind,
    /// Its first line, from 1.
    pub line: usize,
    /// The function it is in, with its type where it has one.
    pub function: String,
    /// What it can be changed into.
    pub changes: Vec<Change>,
}

/// What of the language a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A value; it becomes the text of the change.
    Expression,
    /// A statement that is left out.
    Statement,
    /// A function's body, which returns the text of the change at once.
    Body,
}

/// One way to change a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name of the rule.
    pub operator: &'static str,
    /// What stands there instead; empty for a statement that is left out, and for a body that returns nothing.
    pub text: String,
}

impl Site {
    /// What stands there, on one line and not too long.
    pub fn before(&self, text: &str) -> String {
        shortened(&text[self.range.clone()])
    }

    /// What a change makes of it, likewise.
    pub fn after(&self, change: &Change) -> String {
        match self.kind {
            Kind::Expression => shortened(&change.text),
            Kind::Statement => String::new(),
            Kind::Body => shortened(&format!("return {}", change.text)),
        }
    }
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 160;
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > LONGEST {
        line = line.chars().take(LONGEST).chain("...".chars()).collect();
    }
    line
}

/// The sites of a file, in order.
///
/// Constant items and `const fn`, patterns, types, attributes, bodies of `macro_rules` and arguments of macros other than
/// `vec!` have none: a switch that is read at run time cannot stand there, or nobody knows what the text means. Tests have
/// none because they are the judges.
///
/// # Errors
/// When the text is no Rust.
pub fn of(text: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, owner: None, function: String::new(), sites: BTreeMap::new() };
    finder.visit_file(&file);
    Ok(finder.sites.into_values().filter(|site| !site.changes.is_empty()).collect())
}

/// The files below `source` that are compiled only for tests: those of modules under `#[cfg(test)]`, and what is below them.
///
/// # Errors
/// When a text is no Rust.
pub fn files_of_tests(texts: &BTreeMap<PathBuf, String>) -> syn::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for (path, text) in texts {
        let stem = path.file_stem().unwrap_or_default();
        let parent = path.parent().unwrap_or(Path::new(""));
        let folder = if stem == "mod" || stem == "lib" { parent.to_path_buf() } else { parent.join(stem) };
        for item in &syn::parse_file(text)?.items {
            if let syn::Item::Mod(module) = item
                && module.content.is_none()
                && is_for_tests(&module.attrs)
            {
                let name = module.ident.to_string();
                let below = folder.join(&name);
                found.extend(texts.keys().filter(|path| path.starts_with(&below)).cloned());
                found.insert(folder.join(format!("{name}.rs")));
            }
        }
    }
    Ok(found)
}

struct Finder<'a> {
    text: &'a str,
    /// The type whose `impl` this is in.
    owner: Option<String>,
    function: String,
    sites: BTreeMap<(usize, std::cmp::Reverse<usize>, Kind), Site>,
}

impl Finder<'_> {
    fn source(&self, of: &impl Spanned) -> &str {
        &self.text[of.span().byte_range()]
    }

    fn add(&mut self, of: &impl Spanned, kind: Kind, changes: Vec<Change>) {
        let range = of.span().byte_range();
        let (line, function) = (of.span().start().line, self.function.clone());
        let key = (range.start, std::cmp::Reverse(range.end), kind);
        let site = self.sites.entry(key).or_insert(Site { range, kind, line, function, changes: Vec::new() });
        site.changes.extend(changes);
    }

    fn add_expression(&mut self, of: &impl Spanned, operator: &'static str, texts: impl IntoIterator<Item = String>) {
        let changes = texts.into_iter().map(|text| Change { operator, text }).collect();
        self.add(of, Kind::Expression, changes);
    }

    fn function(&mut self, attrs: &[syn::Attribute], sig: &syn::Signature, block: &syn::Block) {
        if is_for_tests(attrs) || sig.constness.is_some() {
            return;
        }
        let name = self.owner.as_ref().map_or(sig.ident.to_string(), |owner| format!("{owner}::{}", sig.ident));
        let outer = std::mem::replace(&mut self.function, name);
        // What is not looked at, as `let _ = (label, now);` says, does nothing.
        let statements: Vec<&Stmt> = block.stmts.iter().filter(|statement| !is_ignored(statement)).collect();
        // Where a literal or one statement is all there is, its own site says the same.
        let is_covered = match &statements[..] {
            [] | [Stmt::Expr(Expr::Lit(_), None)] => true,
            [Stmt::Expr(expr, Some(_))] => is_deletable(expr),
            _ => false,
        };
        let alone = match &statements[..] {
            [Stmt::Expr(expr, None)] => Some(expr),
            _ => None,
        };
        let is_the_same = |value: &String| {
            alone.is_some_and(|expr| self.source(expr) == value || (value.contains(DEFAULT) && is_default(expr)))
        };
        if !is_covered {
            let values = values_of(&sig.output).into_iter().filter(|value| !is_the_same(value));
            let changes = values.map(|text| Change { operator: "return at once", text }).collect();
            self.add(block, Kind::Body, changes);
        }
        visit::visit_block(self, block);
        self.function = outer;
    }

    fn binary(&mut self, expr: &syn::ExprBinary) {
        let (operator, ops) = swaps(&expr.op);
        let (left, right) = (self.source(&expr.left), self.source(&expr.right));
        let is_assignment = operator == COMPOUND_ASSIGNMENT;
        let texts: Vec<String> = ops
            .iter()
            .map(|op| if is_assignment { format!("{left} {op} {right}") } else { format!("({left}) {op} ({right})") })
            .collect();
        self.add_expression(expr, operator, texts);
    }

    fn literal(&mut self, expr: &syn::ExprLit) {
        match &expr.lit {
            Lit::Int(int) => {
                let Ok(n) = int.base10_parse::<u128>() else { return };
                let others: BTreeSet<u128> =
                    [n + 1, n.saturating_sub(1), 0, 1].into_iter().filter(|&m| m != n).collect();
                let texts = others.into_iter().map(|m| format!("{m}{}", int.suffix()));
                self.add_expression(expr, "constant", texts);
            }
            Lit::Float(float) => {
                let Ok(x) = float.base10_parse::<f64>() else { return };
                let different = |y: &f64| y.to_bits() != x.to_bits();
                let texts =
                    [x + 1.0, 0.0, 1.0].into_iter().filter(different).map(|y| format!("{y:?}{}", float.suffix()));
                self.add_expression(expr, "constant", texts);
            }
            Lit::Bool(bool) => self.add_expression(expr, "constant", [(!bool.value).to_string()]),
            _ => {}
        }
    }

    fn method_call(&mut self, call: &syn::ExprMethodCall) {
        let Some(other) = counterpart(&call.method.to_string()) else { return };
        let (whole, method) = (call.span().byte_range(), call.method.span().byte_range());
        let text = format!("{}{other}{}", &self.text[whole.start..method.start], &self.text[method.end..whole.end]);
        self.add_expression(call, "other method", [text]);
    }

    /// What `if` and `while` ask, unless another site says the same of it.
    fn condition(&mut self, cond: &Expr) {
        let is_covered = match cond {
            Expr::Binary(binary) => !matches!(binary.op, BinOp::And(_) | BinOp::Or(_)),
            Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)),
            Expr::Lit(_) => true,
            Expr::MethodCall(call) => {
                counterpart(&call.method.to_string()).is_some_and(|other| other.starts_with("is_"))
            }
            _ => false,
        };
        if !is_covered && !has_let(cond) {
            self.add_expression(cond, "negated condition", [format!("!({})", self.source(cond))]);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_for_tests(&item.attrs) {
            let owner = self.source(&item.self_ty).to_string();
            let outer = self.owner.replace(owner);
            visit::visit_item_impl(self, item);
            self.owner = outer;
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let outer = self.owner.replace(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.owner = outer;
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    // What is fixed before a run begins, or has no value.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}

    fn visit_pat(&mut self, pat: &'ast syn::Pat) {
        // Nothing of a pattern but the guard behind it.
        if let syn::Pat::Guard(guarded) = pat {
            if !has_let(&guarded.guard) {
                let texts = ["true", "false"].map(str::to_string);
                self.add_expression(&guarded.guard, "match guard", texts);
            }
            self.visit_expr(&guarded.guard);
        }
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        if let Stmt::Expr(expr, Some(_)) = stmt
            && is_deletable(expr)
        {
            self.add(stmt, Kind::Statement, vec![Change { operator: "statement left out", text: String::new() }]);
        }
        visit::visit_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Binary(binary) if !has_let(expr) => self.binary(binary),
            Expr::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) => {
                let operand = format!("({})", self.source(&unary.expr));
                self.add_expression(expr, "sign dropped", [operand]);
            }
            Expr::Lit(literal) => self.literal(literal),
            Expr::MethodCall(call) => self.method_call(call),
            Expr::If(branch) => self.condition(&branch.cond),
            Expr::While(repeated) => self.condition(&repeated.cond),
            Expr::Repeat(repeated) => return self.visit_expr(&repeated.expr),
            Expr::Let(binding) => return self.visit_expr(&binding.expr),
            Expr::Macro(call) if call.mac.path.is_ident("vec") => {
                let values = call.mac.parse_body_with(values_of_vec).unwrap_or_default();
                for value in &values {
                    self.visit_expr(value);
                }
                return;
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }
}

/// The values between the brackets of `vec!`: in a list, or one and how often.
fn values_of_vec(input: syn::parse::ParseStream<'_>) -> syn::Result<Vec<Expr>> {
    let mut values = Vec::new();
    while !input.is_empty() {
        values.push(input.parse()?);
        if input.peek(syn::Token![;]) {
            input.parse::<syn::Token![;]>()?;
        } else if !input.is_empty() {
            input.parse::<syn::Token![,]>()?;
        }
    }
    Ok(values)
}

/// What a function returns that looks at nothing, where its type has a default.
const DEFAULT: &str = "Default::default()";
const COMPOUND_ASSIGNMENT: &str = "compound assignment";

/// The rule for an operator, and what it becomes by that.
fn swaps(op: &BinOp) -> (&'static str, &'static [&'static str]) {
    match op {
        BinOp::Lt(_) => ("comparison", &["<=", ">="]),
        BinOp::Le(_) => ("comparison", &["<", ">"]),
        BinOp::Gt(_) => ("comparison", &[">=", "<="]),
        BinOp::Ge(_) => ("comparison", &[">", "<"]),
        BinOp::Eq(_) => ("comparison", &["!="]),
        BinOp::Ne(_) => ("comparison", &["=="]),
        BinOp::And(_) => ("logic", &["||"]),
        BinOp::Or(_) => ("logic", &["&&"]),
        BinOp::Add(_) => ("arithmetic", &["-"]),
        BinOp::Sub(_) => ("arithmetic", &["+"]),
        BinOp::Mul(_) => ("arithmetic", &["/"]),
        BinOp::Div(_) | BinOp::Rem(_) => ("arithmetic", &["*"]),
        BinOp::BitAnd(_) => ("arithmetic", &["|"]),
        BinOp::BitOr(_) | BinOp::BitXor(_) => ("arithmetic", &["&"]),
        BinOp::Shl(_) => ("arithmetic", &[">>"]),
        BinOp::Shr(_) => ("arithmetic", &["<<"]),
        BinOp::AddAssign(_) => (COMPOUND_ASSIGNMENT, &["-="]),
        BinOp::SubAssign(_) => (COMPOUND_ASSIGNMENT, &["+="]),
        BinOp::MulAssign(_) => (COMPOUND_ASSIGNMENT, &["/="]),
        BinOp::DivAssign(_) | BinOp::RemAssign(_) => (COMPOUND_ASSIGNMENT, &["*="]),
        BinOp::BitAndAssign(_) => (COMPOUND_ASSIGNMENT, &["|="]),
        BinOp::BitOrAssign(_) | BinOp::BitXorAssign(_) => (COMPOUND_ASSIGNMENT, &["&="]),
        BinOp::ShlAssign(_) => (COMPOUND_ASSIGNMENT, &[">>="]),
        BinOp::ShrAssign(_) => (COMPOUND_ASSIGNMENT, &["<<="]),
        _ => ("", &[]),
    }
}

/// The method that says the opposite, or takes the other end.
fn counterpart(method: &str) -> Option<&'static str> {
    const PAIRS: [[&str; 2]; 8] = [
        ["min", "max"],
        ["any", "all"],
        ["is_some", "is_none"],
        ["first", "last"],
        ["front", "back"],
        ["push_front", "push_back"],
        ["pop_front", "pop_back"],
        ["floor", "ceil"],
    ];
    PAIRS.iter().find_map(|&[one, other]| match method {
        _ if method == one => Some(other),
        _ if method == other => Some(one),
        _ => None,
    })
}

/// What a function may return instead of what it should.
fn values_of(output: &ReturnType) -> Vec<String> {
    let of = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    let ReturnType::Type(_, ty) = output else { return of(&[""]) };
    match &**ty {
        Type::Path(path) => {
            let name = path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            match name.as_str() {
                "bool" => of(&["true", "false"]),
                "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => {
                    of(&["0", "1"])
                }
                "f32" | "f64" => of(&["0.0", "1.0"]),
                "Option" => of(&["None", "Some(Default::default())"]),
                "Result" => of(&["Ok(Default::default())"]),
                _ => of(&[DEFAULT]),
            }
        }
        Type::Tuple(_) | Type::Array(_) => of(&[DEFAULT]),
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(_) => of(&["&[]"]),
            Type::Path(path) if path.path.is_ident("str") => of(&["\"\""]),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Whether it is `let _ = ..`.
fn is_ignored(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Local(local) if matches!(local.pat, syn::Pat::Wild(_)))
}

/// Whether it is a default by another name: `Self::default()`, `Vec::new()`, `Ok(())`.
fn is_default(expr: &Expr) -> bool {
    const EMPTY: [&str; 7] = ["Vec", "VecDeque", "String", "BTreeMap", "BTreeSet", "HashMap", "BinaryHeap"];
    let Expr::Call(call) = expr else { return false };
    let Expr::Path(function) = &*call.func else { return false };
    let names: Vec<String> = function.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match (&names[..], call.args.len()) {
        ([.., "default"], 0) => true,
        ([.., of, "new"], 0) => EMPTY.contains(of),
        (["Ok"], 1) => matches!(&call.args[0], Expr::Tuple(tuple) if tuple.elems.is_empty()),
        _ => false,
    }
}

fn is_deletable(expr: &Expr) -> bool {
    match expr {
        Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) => true,
        Expr::Binary(binary) => swaps(&binary.op).0 == COMPOUND_ASSIGNMENT,
        _ => false,
    }
}

/// Whether `let` is a part of a condition: such a one cannot stand in parentheses.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Whether it is `#[test]` or `#[cfg(test)]`.
fn is_for_tests(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let cfg =
            || attr.path().is_ident("cfg") && attr.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        attr.path().is_ident("test") || cfg()
    })
}
