//! Tests with random inputs: bytecode and tree walk give the same results, and no input causes a crash.

use crate::samples::{Sample, Texts};
use crate::{Compiler, Evaluator, Kind, Meaning, REGISTERS, Unit, Vocabulary, Word, parse};

/// Random number generator of Steele, Lea and Flood, sufficient for tests.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(((self.next() >> 32) * u64::from(bound)) >> 32).unwrap()
    }
}

const NAMES: [(&str, Kind); 6] = [
    ("X", Kind::Number(Some(Unit::CELLS))),
    ("K", Kind::Number(Some(Unit::CELLS))),
    ("N", Kind::Number(Some(Unit::NONE))),
    ("now", Kind::Number(Some(Unit::SECONDS))),
    ("tagged", Kind::Truth),
    ("W", Kind::Number(Some(Unit::NONE))),
];
const SUM: f64 = 7.0;
const C: f64 = 353_207.5;

fn vocabulary() -> Vocabulary {
    let mut words: Vec<Word> = (0..)
        .zip(NAMES)
        .map(|(register, (name, kind))| {
            let by_vc = Meaning::ByVc { register, sum: SUM };
            Word { name: name.into(), kind, meaning: if name == "W" { by_vc } else { Meaning::Register(register) } }
        })
        .collect();
    words.push(Word { name: "C".into(), kind: Kind::Number(Some(Unit::RATE)), meaning: Meaning::Constant(C) });
    Vocabulary { words, no_random: None }
}

fn samples() -> Vec<Sample> {
    let names = NAMES.iter().map(|&(name, kind)| Sample { name: name.into(), kind, by_vc: name == "W" });
    names.chain([Sample { name: "C".into(), kind: Kind::Number(Some(Unit::RATE)), by_vc: false }]).collect()
}

/// Tries `texts` random inputs. Returns how many were accepted.
fn campaign(seed: u64, texts: u64) -> u64 {
    let (vocabulary, names) = (vocabulary(), samples());
    let mut accepted = 0;
    let mut draws = Draws(seed);
    for number in 0..texts {
        let random = &mut |bound| draws.below(bound);
        let mut maker = Texts { below: random, names: &names, random: true };
        let is_mistaken = number % 2 == 1;
        let depth = 1 + (maker.below)(5);
        let text = if is_mistaken { maker.mistaken(depth) } else { maker.of(Kind::Truth, depth) };
        if is_accepted(&text, &vocabulary, &mut draws, is_mistaken) {
            accepted += 1;
        }
    }
    accepted
}

fn is_accepted(text: &str, vocabulary: &Vocabulary, draws: &mut Draws, is_mistaken: bool) -> bool {
    let mut compiler = Compiler::new(6);
    let made = parse(text).and_then(|tree| {
        vocabulary.check(&tree)?;
        let program = compiler.compile(&tree, vocabulary)?;
        Ok((tree, program))
    });
    let (tree, program) = match made {
        Ok(made) => made,
        Err(fault) => {
            let shown = fault.shown(text);
            let is_large = [
                "has a unit with too high an exponent",
                "nested more",
                "bytes long",
                "the bytecode has one constant too many for the registers",
                "values at once",
                "operations",
                "names a value",
            ];
            assert!(is_mistaken || is_large.iter().any(|large| shown.contains(large)), "{text}\n{shown}");
            assert!(shown.lines().count() >= 2 && shown.len() < 1200, "{shown}");
            return false;
        }
    };
    for _ in 0..2 {
        let mut values = [(); 6].map(|()| f64::from(draws.below(1200)) * [1.0, 0.0, 0.125][draws.below(3) as usize]);
        values[4] = f64::from(draws.below(2));
        let mut registers = compiler.registers();
        registers[..6].copy_from_slice(&values);
        // Values left over from an earlier run have no effect.
        registers[128..REGISTERS].fill(f64::from(draws.below(9)));
        let seed = draws.next();
        let (mut replaced, mut stream) = (0, Draws(seed));
        let answer = program.run(&mut registers, &mut || f64::from(stream.below(1000)) / 1000.0, &mut replaced);
        let mut oracle = Draws(seed);
        let mut draw = || f64::from(oracle.below(1000)) / 1000.0;
        let mut evaluator = Evaluator::new(vocabulary, &registers, &mut draw);
        let (expected, replaced_in_tree) = (evaluator.value(&tree), evaluator.replaced);
        assert!(answer.is_finite(), "{text}");
        assert_eq!((answer, replaced, stream.0), (expected, replaced_in_tree, oracle.0), "{text} of {values:?}");
        let explained = vocabulary.check(&tree) == Ok(Kind::Truth) && !text.contains("random");
        let clauses = Evaluator::new(vocabulary, &registers, &mut || 0.5).why_not(&tree, text);
        assert!(!explained || clauses.is_empty() == (answer != 0.0), "{text} of {values:?}: {clauses:?}");
        assert_eq!(registers[..6], values, "{text} overwrites the register of another name");
        assert!(program.constant().is_none_or(|constant| constant == answer), "{text}");
    }
    true
}

/// Tries 40,000 inputs by default; `make campaign NAME=formulas` tries ten million.
#[test]
fn formula_bytecode_gives_the_results_of_the_syntax_tree_and_never_panics() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("the value is a number"))
    };
    let (texts, seed) = (number("CELLTRAIN_FORMULAS", 40_000), number("CELLTRAIN_FORMULAS_SEED", 1));
    let halves: Vec<_> =
        [0, 1].map(|half| std::thread::spawn(move || campaign(2 * seed + half, texts / 2))).into_iter().collect();
    let accepted: u64 =
        halves.into_iter().map(|half| half.join().expect("the thread with random texts does not panic")).sum();
    println!("{accepted} of {texts} texts accepted, seed {seed}");
    // Half of the inputs are well-typed, but a few of them are too large.
    assert!(accepted * 20 > texts * 9, "{accepted} of {texts}");
}
