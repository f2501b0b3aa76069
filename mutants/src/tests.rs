use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::judge::failed_test;
use crate::schemata::Schemata;
use crate::sites::Kind;

const SOURCE_TEXT: &str = r"
//! A module.
const LIMIT: u32 = 5;
macro_rules! list { ($x:ident) => { fn hidden() -> u32 { 1 + 2 } }; }
#[derive(Default)]
struct A { x: [u32; 4], y: [bool; 9] }
enum B { One = 1 }
const fn fixed() -> u32 { 3 + 4 }
impl A {
    fn grow(&mut self, by: u32) -> bool {
        self.x[0] += by;
        if by < 7 && !self.is_full() { self.x[1] = by.max(2); }
        match by { 0 | 1 => false, n if n > 3 => true, _ => true }
    }
    fn is_full(&self) -> bool { self.x[0] == LIMIT }
}
fn lists(n: Option<u32>) -> Vec<u32> {
    let y = [n.is_some(); 9];
    if let Some(n) = n && n > 0 { return vec![n + 1; 3]; }
    assert!(1 + 1 == 2);
    Vec::new()
}
#[cfg(test)]
mod tests { fn f() -> u32 { 1 + 1 } }
";

/// Function, what stands there and what becomes of it, of all changes.
fn changes(text: &str) -> Vec<(String, String, String)> {
    let sites = sites::of(text).unwrap();
    let of = |site: &Site| {
        let change = |change: &Change| (site.function.clone(), site.before(text), site.after(change));
        site.changes.iter().map(change).collect::<Vec<_>>()
    };
    sites.iter().flat_map(of).collect()
}

#[test]
fn what_can_be_changed_is_found_and_what_cannot_is_not() {
    let found = changes(SOURCE_TEXT);
    let is_there = |function: &str, before: &str, after: &str| {
        found.iter().any(|(f, b, a)| (f.as_str(), b.as_str(), a.as_str()) == (function, before, after))
    };
    for (before, after) in [
        ("self.x[0] += by", "self.x[0] -= by"),
        ("self.x[0] += by;", ""),
        ("by < 7", "(by) <= (7)"),
        ("by < 7 && !self.is_full()", "(by < 7) || (!self.is_full())"),
        ("by < 7 && !self.is_full()", "!(by < 7 && !self.is_full())"),
        ("!self.is_full()", "(self.is_full())"),
        ("by.max(2)", "by.min(2)"),
        ("7", "8"),
        ("n > 3", "true"),
        ("n > 3", "(n) >= (3)"),
        ("true", "false"),
    ] {
        assert!(is_there("A::grow", before, after), "{before} -> {after}: {found:#?}");
    }
    assert!(is_there("A::is_full", "{ self.x[0] == LIMIT }", "return false"), "{found:#?}");
    assert!(is_there("lists", "n > 0", "(n) >= (0)") && is_there("lists", "n.is_some()", "n.is_none()"), "{found:#?}");
    assert!(is_there("lists", "n + 1", "(n) - (1)") && is_there("lists", "3", "4"), "{found:#?}");
    let of: Vec<&str> = found.iter().map(|(function, ..)| function.as_str()).collect();
    assert!(of.iter().all(|function| ["A::grow", "A::is_full", "lists"].contains(function)), "{of:?}");
    // A condition with `let`, a pattern, the length of an array, and what an assertion says.
    for text in ["Some(n) = n && n > 0", "0 | 1", "1 + 1 == 2", "9"] {
        assert!(found.iter().all(|(_, before, _)| before != text), "{text}");
    }
}

#[test]
fn a_body_that_is_nothing_but_its_default_does_not_return_it_at_once() {
    let returns = |body: &str| {
        let text = format!("impl A {{ fn f(&self, x: u32) {body} }}");
        let bodies = changes(&text).into_iter().filter(|(.., after)| after.starts_with("return"));
        bodies.map(|(.., after)| after).collect::<Vec<_>>()
    };
    for body in [
        "-> Self { Self::default() }",
        "-> Vec<u32> { Vec::new() }",
        "-> Vec<u32> { let _ = x; Vec::new() }",
        "-> Option<u32> { let _ = x; Some(Default::default()) }",
        "-> Result<(), E> { Ok(()) }",
        "-> bool { let _ = x; true }",
        "{ let _ = x; }",
        "{}",
    ] {
        let found = returns(body);
        let others: &[&str] = if body.contains("Option") { &["return None"] } else { &[] };
        assert_eq!(found, others, "{body}");
    }
    for (body, after) in [
        ("-> Self { Self::new() }", "return Default::default()"),
        ("-> Vec<u32> { vec![x] }", "return Default::default()"),
        ("-> Vec<u32> { self.note(x); Vec::new() }", "return Default::default()"),
        ("-> Result<u32, E> { Ok(x) }", "return Ok(Default::default())"),
        ("{ let _ = x; self.a(); self.b(); }", "return"),
    ] {
        assert_eq!(returns(body), [after], "{body}");
    }
}

fn mutants(text: &str) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for site in sites::of(text).unwrap() {
        let (change, before) = (site.changes[0].clone(), site.before(text));
        let (file, module, line) = (PathBuf::from("a.rs"), "a".into(), String::new());
        mutants.push(Mutant { number: mutants.len(), file, module, site, change, before, line });
    }
    mutants
}

#[test]
fn each_mutant_stands_in_the_text_once_and_without_their_switches_it_is_as_it_was() {
    let mutants = mutants(SOURCE_TEXT);
    let schemata = Schemata::of(SOURCE_TEXT, &mutants.iter().collect::<Vec<_>>());
    syn::parse_file(&schemata.text).unwrap();
    let mut text = schemata.text.clone();
    for mutant in mutants.iter().rev() {
        let number = mutant.number;
        let switch = match mutant.site.kind {
            Kind::Expression => format!("(if crate::mutant::on({number}) {{ {} }} else {{ ", mutant.change.text),
            Kind::Statement => format!("if !crate::mutant::on({number}) {{ "),
            Kind::Body => format!("{{ if crate::mutant::on({number}) {{ return {}; }} ", mutant.change.text),
        };
        assert_eq!(text.matches(&switch).count(), 1, "{switch} in {text}");
        let at = text.find(&switch).unwrap();
        // What it stood in ends where the original's text does, which is as it was by now.
        let original = &SOURCE_TEXT[mutant.site.range.clone()];
        let (original, end) = match mutant.site.kind {
            Kind::Expression => (original, " })"),
            Kind::Statement => (original, " }"),
            Kind::Body => (&original[1..], ""),
        };
        let old = format!("{switch}{original}{end}");
        assert_eq!(text.get(at..at + old.len()), Some(&old[..]));
        let brace = if mutant.site.kind == Kind::Body { "{" } else { "" };
        text.replace_range(at..at + old.len(), &format!("{brace}{original}"));
    }
    assert_eq!(text, SOURCE_TEXT);
}

#[test]
fn an_error_is_the_fault_of_the_change_it_lies_in_or_of_the_innermost_around_it() {
    let text = "fn f(a: u32) -> bool { a * 2 < 7 }";
    let mutants: Vec<Mutant> = mutants(text).into_iter().filter(|mutant| mutant.before != "2").collect();
    let schemata = Schemata::of(text, &mutants.iter().collect::<Vec<_>>());
    let number = |before: &str| mutants.iter().find(|mutant| mutant.before == before).map(|mutant| mutant.number);
    let at = |text: &str| schemata.text.find(text).map(|at| at..at + text.len()).unwrap();
    assert_eq!(schemata.blamed(&at("(a * 2) <= (7)")), number("a * 2 < 7"));
    assert_eq!(schemata.blamed(&at("(a) / (2)")), number("a * 2"));
    assert_eq!(schemata.blamed(&at("return true")), number("{ a * 2 < 7 }"));
    assert_eq!(schemata.blamed(&at("fn f")), None);
    assert_eq!(schemata.near(&at("fn f")).len(), mutants.len());
}

#[test]
fn files_of_tests_are_those_of_modules_under_cfg_test() {
    let texts: BTreeMap<PathBuf, String> = [
        ("src/lib.rs", "mod a; #[cfg(test)] mod b;"),
        ("src/a.rs", "#[cfg(test)] mod tests; mod c;"),
        ("src/a/tests.rs", ""),
        ("src/a/c.rs", ""),
        ("src/b/mod.rs", "mod d;"),
        ("src/b/d.rs", ""),
    ]
    .map(|(path, text)| (path.into(), text.into()))
    .into();
    let found = sites::files_of_tests(&texts).unwrap();
    let found: Vec<_> = texts.keys().filter(|path| found.contains(*path)).map(|path| path.to_str().unwrap()).collect();
    assert_eq!(found, ["src/a/tests.rs", "src/b/d.rs", "src/b/mod.rs"]);
}

#[test]
fn the_same_seed_draws_the_same_and_each_site_at_most_once() {
    let texts: BTreeMap<PathBuf, String> = [(Path::new(SOURCE).join("abr/mod.rs"), SOURCE_TEXT.to_string())].into();
    let draw = |seed, count| {
        let options = Options {
            seed,
            count,
            jobs: 1,
            differential: 0,
            planted: None,
            within: vec!["queue".into(), "abr/mod.rs".into()],
        };
        let drawn = draw(&texts, &options).unwrap();
        drawn.into_iter().map(|mutant| (mutant.site.range.start, mutant.before, mutant.change.text)).collect::<Vec<_>>()
    };
    assert_eq!(draw(1, 4), draw(1, 4));
    assert_ne!(draw(1, 4), draw(2, 4));
    let mut all = draw(3, 1000);
    assert_eq!(all.len(), sites::of(SOURCE_TEXT).unwrap().len());
    all.dedup();
    assert_eq!(all.len(), sites::of(SOURCE_TEXT).unwrap().len());
    assert_eq!(module(&Path::new(SOURCE).join("abr/mod.rs")), "abr");
    assert_eq!(module(&Path::new(SOURCE).join("abr/source.rs")), "abr::source");
}

#[test]
fn the_test_that_failed_is_named() {
    let said = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n";
    assert_eq!(failed_test(said), Some("a::c".into()));
    assert_eq!(failed_test("memory allocation of 5 bytes failed"), None);
}
