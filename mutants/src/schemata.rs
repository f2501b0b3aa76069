//! A file with all its mutants in it, each behind a switch: one build serves them all.
//!
//! What is mutated becomes `if mutant::on(17) { changed } else { original }`. Only one switch is on in a run, so the changed
//! text holds no other mutants, and the text grows little by mutants inside mutants.

use std::fmt::Write;
use std::ops::Range;

use crate::Mutant;
use crate::sites::Kind;

/// A file's text with switches, and where they are in it.
pub struct Schemata {
    /// The new text.
    pub text: String,
    places: Vec<Place>,
}

/// Where a mutant is in the new text.
struct Place {
    number: usize,
    /// The bytes of its change.
    change: Range<usize>,
    /// Those of all it stands in.
    whole: Range<usize>,
}

impl Schemata {
    /// Puts mutants of one file into its text.
    pub fn of(text: &str, mutants: &[&Mutant]) -> Self {
        // Those that hold others come before them.
        let mut ordered = mutants.to_vec();
        ordered.sort_by_key(|mutant| {
            let range = &mutant.site.range;
            (range.start, std::cmp::Reverse(range.end), mutant.site.kind != Kind::Statement)
        });
        let mut schemata = Self { text: String::with_capacity(2 * text.len()), places: Vec::new() };
        schemata.write(text, 0..text.len(), &ordered);
        schemata
    }

    /// The mutants a compiler's complaint about these bytes is due to: the one whose change they lie in; otherwise the
    /// innermost one around them.
    pub fn blamed(&self, bytes: &Range<usize>) -> Option<usize> {
        let covers = |range: &Range<usize>| range.start <= bytes.start && bytes.end <= range.end;
        let innermost = |of: fn(&Place) -> &Range<usize>| {
            self.places
                .iter()
                .filter(|place| covers(of(place)))
                .min_by_key(|place| of(place).len())
                .map(|place| place.number)
        };
        innermost(|place| &place.change).or_else(|| innermost(|place| &place.whole))
    }

    /// The mutants within the function nearest around these bytes, as far as blank lines and indents tell: those between
    /// the closing braces of top-level items before and behind.
    pub fn near(&self, bytes: &Range<usize>) -> Vec<usize> {
        let start = self.text[..bytes.start.min(self.text.len())].rfind("\n}").unwrap_or(0);
        let end = self.text[bytes.end.min(self.text.len())..].find("\n}").map_or(self.text.len(), |at| bytes.end + at);
        self.places
            .iter()
            .filter(|place| place.whole.start >= start && place.whole.end <= end)
            .map(|place| place.number)
            .collect()
    }

    fn write(&mut self, text: &str, range: Range<usize>, mutants: &[&Mutant]) {
        let (mut at, mut rest) = (range.start, mutants);
        while let Some((mutant, behind)) = rest.split_first() {
            let site = mutant.site.range.clone();
            let inner =
                behind.partition_point(|other| other.site.range.end <= site.end && other.site.range.start < site.end);
            self.text.push_str(&text[at..site.start]);
            self.switch(text, mutant, &behind[..inner]);
            (at, rest) = (site.end, &behind[inner..]);
        }
        self.text.push_str(&text[at..range.end]);
    }

    fn switch(&mut self, text: &str, mutant: &Mutant, inner: &[&Mutant]) {
        let (range, number, change) = (mutant.site.range.clone(), mutant.number, &mutant.change.text);
        let begin = self.text.len();
        let changed = match mutant.site.kind {
            Kind::Expression => {
                write!(self.text, "(if crate::mutant::on({number}) {{ ").expect("a string takes all");
                let changed = self.push(change);
                self.text.push_str(" } else { ");
                self.write(text, range, inner);
                self.text.push_str(" })");
                changed
            }
            Kind::Statement => {
                write!(self.text, "if !crate::mutant::on({number}) {{ ").expect("a string takes all");
                let before = self.text.len();
                self.write(text, range, inner);
                self.text.push_str(" }");
                before..before
            }
            Kind::Body => {
                write!(self.text, "{{ if crate::mutant::on({number}) {{ return ").expect("a string takes all");
                let changed = self.push(change);
                self.text.push_str("; } ");
                self.write(text, range.start + 1..range.end, inner);
                changed
            }
        };
        self.places.push(Place { number, change: changed, whole: begin..self.text.len() });
    }

    fn push(&mut self, text: &str) -> Range<usize> {
        let begin = self.text.len();
        self.text.push_str(text);
        begin..self.text.len()
    }
}

/// The module of the mutated core that knows which switch is on. Asked to watch, it writes down which are reached.
pub fn switchboard(count: usize) -> String {
    format!(
        r#"//! Which mutant is on.

use std::io::Write;
use std::sync::atomic::{{AtomicBool, AtomicU32, Ordering::Relaxed}};

const UNREAD: u32 = u32::MAX;
const WATCHING: u32 = u32::MAX - 1;
static ON: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicBool; {count}] = [const {{ AtomicBool::new(false) }}; {count}];

/// Whether the mutant of this number is on.
#[inline]
pub fn on(number: u32) -> bool {{
    let on = ON.load(Relaxed);
    if on >= WATCHING {{
        return ask(on, number);
    }}
    on == number
}}

#[cold]
#[inline(never)]
fn ask(mut on: u32, number: u32) -> bool {{
    if on == UNREAD {{
        let number = std::env::var("{ON}").ok();
        on = number.map_or(WATCHING - 1, |number| number.parse().unwrap_or(WATCHING));
        ON.store(on, Relaxed);
    }}
    if on == WATCHING && !REACHED[number as usize].swap(true, Relaxed) {{
        let path = std::env::var("{REACHED}").expect("who watches says where to write");
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).expect("it can be written");
        file.write_all(format!("{{number}}\n").as_bytes()).expect("it can be written");
    }}
    on == number
}}
"#
    )
}

/// The variable that says which mutant is on; [`WATCH`] says none, and that those reached are to be written down.
pub const ON: &str = "CELLTRAIN_MUTANT";
/// See [`ON`].
pub const WATCH: &str = "watch";
/// The variable that says where.
pub const REACHED: &str = "CELLTRAIN_MUTANTS_REACHED";
