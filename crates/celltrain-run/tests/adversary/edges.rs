//! Edge cases of values: numbers close to powers of two, invalid units, and names in various writing systems.

use celltrain_core::rng::Stream;
use serde_json::{Value, json};

/// Marks a string whose remaining characters are written into TOML without quotation marks.
pub(crate) const RAW: char = '\u{1}';

const WHOLE: &[u64] = &[
    0, 1, 2, 3, 47, 48, 255, 256, 65_535, 65_536, 0xff_ffff, 0x100_0000, 0x7fff_ffff, 0x8000_0000, 0x8000_0001,
    0xffff_ffff, 0x1_0000_0000, 0x1f_ffff_ffff_ffff, 0x20_0000_0000_0000, 0x20_0000_0000_0001, 0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000, 0xffff_ffff_ffff_fffe, 0xffff_ffff_ffff_ffff,
];
/// Strings that are not 64-bit integers, or that are integers written in an unusual form.
const BEYOND: &[&str] = &[
    "-1", "-2147483648", "-9223372036854775808", "18446744073709551616", "170141183460469231731687303715884105728",
    "100000000000000000000000000000000000000000", "0x1p3", "1e3", "+7", "0xff", "1_000",
];
const FRACTIONS: &[&str] = &[
    "0.0", "-0.0", "5e-324", "2.2250738585072014e-308", "1e-300", "1e-9", "0.015625", "0.1", "0.30000000000000004",
    "0.5", "0.9999999999999999", "1.0", "1.0000000000000002", "2.5", "1000000.0", "4294967296.5", "9007199254740993.0",
    "1.7976931348623157e308", "1e400", "nan", "-nan", "inf", "-inf", "-0.5",
];
const AMOUNTS: &[&str] = &[
    "0", "1", "0.5", "0.001", "0.000000000001", "1.0000000000000000001", "0.999999999999999999", "52", "53", "424",
    "423", "1_000", "1e9", "-1", "nan", "inf", "", ".", "..", "1.2.3", "99999999999999999999",
    "340282366920938463463374607431768211456", "٣",
];

fn pick<'a, T: ?Sized>(rng: &mut Stream, from: &[&'a T]) -> &'a T {
    from[rng.below(u32::try_from(from.len()).expect("the length of this list fits in 32 bits")) as usize]
}

fn whole(rng: &mut Stream) -> u64 {
    WHOLE[rng.below(u32::try_from(WHOLE.len()).expect("the length of this list fits in 32 bits")) as usize]
}

fn raw(text: &str) -> Value {
    format!("{RAW}{text}").into()
}

/// Draws a whole number that is small, an edge case, or at a limit of the schema.
pub(crate) fn integer(rng: &mut Stream, own: &Value, schema: &Value) -> Value {
    let bound = |key: &str| own[key].as_u64().or_else(|| schema[key].as_u64());
    match rng.below(8) {
        0..=2 => json!(rng.below(2_000)),
        3 => bound("minimum").map_or(json!(1), |least| json!(least + u64::from(rng.below(2)))),
        4 => bound("maximum").map_or(json!(whole(rng)), |most| json!(most - 1 + u64::from(rng.below(3)))),
        5 if rng.below(3) == 0 => raw(pick(rng, BEYOND)),
        _ => json!(whole(rng)),
    }
}

/// Draws any number that is small, an edge case, or at a limit of the schema.
pub(crate) fn number(rng: &mut Stream, own: &Value, schema: &Value) -> Value {
    let bound = |key: &str| own[key].as_f64().or_else(|| schema[key].as_f64());
    match rng.below(8) {
        0..=1 => json!(f64::from(rng.below(2_000)) / 1000.0),
        2 => json!(bound("minimum").unwrap_or(0.0)),
        3 => json!(bound("maximum").unwrap_or(1.0)),
        4 => json!(whole(rng)),
        _ => raw(pick(rng, FRACTIONS)),
    }
}

/// Draws a quantity with a unit. Half of the amounts are ordinary, the other amounts are edge cases.
pub(crate) fn quantity(rng: &mut Stream, kind: &str) -> String {
    let units: &[&str] = match kind {
        "rate" => &["Mbps", "Mbps", "kbps", "bps", "Gbps"],
        "time" => &["ms", "ms", "us", "ns", "ps", "s"],
        "response time" => &["us", "ns", " quanta", " quanta", "s"],
        "size" => &["B", "B", "kB", "MB"],
        _ => panic!("{kind} is not a known kind of quantity"),
    };
    let unit = match rng.below(40) {
        0 => pick(rng, &["", "Hz", "µs", "kB", "Mbps", "s ", " ms", "MS", "fortnights", "\u{0}"]),
        _ => pick(rng, units),
    };
    let amount = match rng.below(8) {
        0..=3 => rng.below(1_000).to_string(),
        4 => format!("{}.{}", rng.below(1_000), rng.below(1_000_000)),
        5 => whole(rng).to_string(),
        _ => pick(rng, AMOUNTS).to_string(),
    };
    let space = if rng.below(20) == 0 { " " } else { "" };
    format!("{amount}{space}{unit}")
}

/// Draws a name, or a string that could be mistaken for a name.
pub(crate) fn name(rng: &mut Stream) -> String {
    const NAMES: &[&str] = &[
        "", " ", "a", "tcp1", "tcp2-3", "tcp1-4294967295", "tcp1-4294967296", "tcp3-1", "tcp-", "tcp01", "tcp+1",
        "tcp1-acks", "-acks", "long1", "source1-2", "host1", "default", "bottleneck", "sw1->sw2", "sw1", "->", "*",
        "**", "sw*->*", "*********************************x", "é", "e\u{301}", "名前", "😀", "\u{202e}drawkcab",
        "\u{200b}", "a\u{7f}b", "\u{1b}[31mred", "line\nbreak", "tab\there", "nul\u{0}", "=1+1", "@x", "$\\x$",
        "<script>", "a.b", "\"quoted\"", "'", "{}", "%s%n", "../../etc/passwd", "CON", "NaN", "infinite", "true",
    ];
    match rng.below(30) {
        0 => "x".repeat(1 + rng.below(3_000) as usize),
        1 => "a*".repeat(1 + rng.below(40) as usize),
        _ => pick(rng, NAMES).to_string(),
    }
}

/// Draws a value whose type is probably not the type that the schema requires.
pub(crate) fn of_another_kind(rng: &mut Stream) -> Value {
    match rng.below(10) {
        0 => json!(true),
        1 => json!([]),
        2 => json!({}),
        3 => json!(whole(rng)),
        4 => raw("1979-05-27T07:32:00Z"),
        5 => raw(pick(rng, FRACTIONS)),
        6 => raw(pick(rng, BEYOND)),
        7 => json!([[[[[[]]]]]]),
        8 => json!({"": {"": {}}}),
        _ => name(rng).into(),
    }
}
