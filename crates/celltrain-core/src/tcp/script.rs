//! Timed scripts for a connection's two ends: one line for each segment or acknowledgement sent or received.
//!
//! The lines of a script (`tests/tcp/*.script`, read by [`crate::script`]):
//!
//! ```text
//! start            the connection begins to send
//! ack 3            an acknowledgement of the first three segments reaches the sender
//! ack 3 sack 6-8 5 the same with two blocks, segments 6 to 8 and segment 5
//! window 4         acknowledgements that reach it from now on advertise four segments
//! at 250           it is 250 ms since the start; otherwise no time passes
//! tick 2           the retransmission clock ticks twice
//! receive 3        segment 3 reaches the receiver, whoever sent it
//! receive 3 marked the same; a switch has marked it (CE)
//! receive 3 reduced the same; its sender reports that it has reduced the window (CWR); `marked reduced` is both
//! ack 3 echo       an acknowledgement that reports a mark (ECE) reaches the sender
//! write 5          the application writes five more segments (with `set segments`)
//! delayed tick     the receiver's delayed-acknowledgement timer ticks
//! > 0              the sender sends segment 0
//! > 4 again        the sender sends segment 4, which it sent before
//! > 4 reduced      the sender sends segment 4, and reports that it has reduced the window
//! > probe 4        the sender sends one byte of segment 4 into a closed window
//! < ack 3          the receiver acknowledges the first three segments
//! < ack 3 sack 5   the same with a block
//! < ack 3 echo     the same, and it reports a mark
//! = cwnd 2         a variable's value: cwnd, ssthresh (segments), rto (ticks), interval (milliseconds between paced segments);
//!                  how often: fast_retransmits, timeouts; capable: 1 if the last segment sent was ECN-capable
//! ```
//!
//! `7 to 9` in a line stands for one line each with 7, 8 and 9 (`ack 7 to 9`, `> 7 to 9 again`). `x5` at the end
//! repeats a line five times (`ack 7 x5`). Segments are numbered from 0, so `ack 7` acknowledges 0 to 6 and requests 7.
//!
//! Three settings are not options: `first_segment` (all earlier segments are sent and acknowledged), `segments` (the
//! number to send) and `pace` (the milliseconds between segments). Everything sent or received is converted to 32-bit
//! sequence numbers, which wrap after 8000 bytes, and back.
//!
//! A script must list every segment sent: it fails if one is missing or superfluous. Comments quote the sentence of the
//! source that requires the behaviour. If the comment after an acknowledgement is only a number, it is the segment that
//! caused the acknowledgement.

use std::fmt::Write;
use std::path::Path;

use super::{Ack, Receiver, Rules, SackBlocks, Segment, Sender, TcpConfig, TcpOptions, sequence, window_scale};
use crate::script::{self, Settings, compare, number, play_all};
use crate::units::{Clock, Span, Time};

struct Player {
    sender: Sender,
    receiver: Receiver,
    options: TcpOptions,
    /// Segments and acknowledgements sent but not yet matched, in script notation.
    sent: Vec<String>,
    window: Option<u64>,
    now: Time,
    /// First byte not covered by any acknowledgement that the sender has received.
    una: u64,
}

/// Sequence number of the stream's first byte. It makes numbers wrap within the first segments of most scripts.
const INITIAL: u32 = u32::MAX - 8000;
/// Scripts count milliseconds.
const CLOCK: Clock = Clock::exact(1000);

/// Returns a stream offset after conversion to a 32-bit sequence number and back; `near` is close to it.
fn through_number(offset: u64, near: u64) -> u64 {
    sequence::offset(sequence::number(offset, INITIAL), near, INITIAL)
}

/// Returns an acknowledgement and its blocks after conversion to 32-bit sequence numbers and back.
fn as_read(ack: Ack, blocks: &SackBlocks, near: u64) -> (Ack, SackBlocks) {
    let mut read = SackBlocks::default();
    for (start, end) in blocks.iter() {
        read.push(through_number(start, near), through_number(end, near));
    }
    (Ack { ack: through_number(ack.ack, near), ..ack }, read)
}

impl script::Player for Player {
    type Sent = String;

    fn play(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            [">" | "<", ..] => {
                for expected in lines(words)? {
                    match self.sent.first() {
                        Some(sent) if *sent == expected => drop(self.sent.remove(0)),
                        Some(sent) => return Err(format!("`{sent}` was sent, not `{expected}`")),
                        None => return Err(format!("`{expected}` was not sent")),
                    }
                }
            }
            ["=", name, expected] => {
                let value = match *name {
                    "cwnd" => self.sender.cwnd(),
                    "ssthresh" => self.sender.ssthresh(),
                    "rto" => f64::from(self.sender.rto()),
                    "fast_retransmits" => self.sender.counters().fast_retransmits as f64,
                    "timeouts" => self.sender.counters().timeouts as f64,
                    "interval" => self.sender.interval().0 as f64,
                    "capable" => f64::from(u8::from(self.sender.sends_capable())),
                    _ => return Err("unknown variable".into()),
                };
                compare(value, expected)?;
            }
            _ => {
                self.expect_silence().map_err(|why| format!("before this line, {why}"))?;
                for event in lines(words)? {
                    self.happen(&event.split(' ').collect::<Vec<_>>())?;
                }
            }
        }
        Ok(())
    }

    fn unexpected(&self) -> &[String] {
        &self.sent
    }
}

impl Player {
    fn happen(&mut self, words: &[&str]) -> Result<(), String> {
        let mss = self.options.mss.bytes;
        let ack = match words {
            ["receive", segment, flags @ ..] => {
                let (marked, reduced) = match flags {
                    [] => (false, false),
                    ["marked"] => (true, false),
                    ["reduced"] => (false, true),
                    ["marked", "reduced"] => (true, true),
                    _ => return Err(format!("{flags:?} is not `marked`, `reduced` or both")),
                };
                if let Some(earlier) = self.receiver.acknowledge_before(marked) {
                    self.acknowledged(earlier)?;
                }
                self.receiver.on_mark(marked, reduced);
                let len = u32::try_from(mss).map_err(|e| e.to_string())?;
                let segment = Segment { seq: number(segment)? * mss, len };
                let seq = through_number(segment.seq, self.receiver.delivered());
                self.receiver.on_segment(Segment { seq, ..segment })
            }
            ["delayed", "tick"] => self.receiver.on_delayed_ack_tick(),
            words => return self.happen_to_sender(words),
        };
        ack.map_or(Ok(()), |ack| self.acknowledged(ack))
    }

    /// Records an acknowledgement sent by the receiver.
    fn acknowledged(&mut self, ack: Ack) -> Result<(), String> {
        let mss = self.options.mss.bytes;
        let (ack, blocks) = as_read(ack, &self.receiver.blocks(), ack.ack);
        let mut line = format!("< ack {}", ack.ack / mss);
        for ((start, end), which) in blocks.iter().zip(0..) {
            let (first, last) = (start / mss, end / mss - 1);
            let sack = if which == 0 { " sack" } else { "" };
            let to = if first == last { String::new() } else { format!("-{last}") };
            write!(line, "{sack} {first}{to}").map_err(|e| e.to_string())?;
        }
        if self.receiver.echoes_mark() {
            line.push_str(" echo");
        }
        self.sent.push(line);
        Ok(())
    }

    fn happen_to_sender(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["start"] => {}
            ["ack", segments, rest @ ..] => {
                let window = self.window.unwrap_or(self.options.receive_window.bytes);
                let scale = window_scale(self.options.receive_window.bytes);
                let mss = self.options.mss.bytes;
                let ack = number(segments)? * mss;
                let window = u16::try_from(window >> scale).map_err(|e| e.to_string())?;
                let (rest, echoes) = match rest {
                    [rest @ .., "echo"] => (rest, true),
                    rest => (rest, false),
                };
                let mut blocks = SackBlocks::default();
                match rest {
                    [] => {}
                    ["sack", ranges @ ..] => {
                        for range in ranges {
                            let (first, last) = range.split_once('-').unwrap_or((range, range));
                            blocks.push(number(first)? * mss, (number(last)? + 1) * mss);
                        }
                    }
                    _ => return Err(format!("{rest:?} is not `sack` and blocks")),
                }
                let (ack, blocks) = as_read(Ack { ack, window }, &blocks, self.una);
                self.una = self.una.max(ack.ack);
                self.sender.on_echo(echoes);
                self.sender.on_ack(ack, &blocks, self.now);
            }
            ["at", milliseconds] => self.now = Time(number(milliseconds)?),
            ["write", segments] => self.sender.write(number(segments)? * self.options.mss.bytes),
            ["tick"] => {
                self.sender.on_tick(self.now);
            }
            ["tick", times] => {
                for _ in 0..number(times)? {
                    self.sender.on_tick(self.now);
                    self.collect();
                }
            }
            ["window", segments] => self.window = Some(number(segments)? * self.options.mss.bytes),
            _ => return Err(format!("unknown event {words:?}")),
        }
        self.collect();
        Ok(())
    }

    fn collect(&mut self) {
        let mss = self.options.mss.bytes;
        loop {
            let retransmitted = self.sender.counters().retransmitted_segments;
            let Some(segment) = self.sender.next_segment(self.now) else { break };
            let segment = Segment { seq: through_number(segment.seq, self.una), ..segment };
            assert_eq!(segment.seq % mss, 0, "segments begin at multiples of the segment size (A-17)");
            if segment.len == 1 && mss > 1 {
                self.sent.push(format!("> probe {}", segment.seq / mss));
                continue;
            }
            assert_eq!(u64::from(segment.len), mss, "only full segments are sent (A-17)");
            let again = if self.sender.counters().retransmitted_segments > retransmitted { " again" } else { "" };
            let reduced = if self.sender.reports_reduction() { " reduced" } else { "" };
            self.sent.push(format!("> {}{again}{reduced}", segment.seq / mss));
        }
    }
}

/// Expands a line: one line for each number of `A to B`, or N copies if it ends with `xN`.
fn lines(words: &[&str]) -> Result<Vec<String>, String> {
    let sides: Vec<_> = words.split(|&word| word == "to").collect();
    let lines: Vec<_> = match (sides.as_slice(), words) {
        ([[before @ .., first], [last, after @ ..]], _) => (number(first)?..=number(last)?)
            .map(|i| [before, &[i.to_string().as_str()], after].concat().join(" "))
            .collect(),
        ([_], [line @ .., last]) => match last.strip_prefix('x') {
            Some(times) => (0..number(times)?).map(|_| line.join(" ")).collect(),
            None => vec![words.join(" ")],
        },
        _ => return Err("`to` separates two numbers".into()),
    };
    if lines.is_empty() { Err("the event matches no line of the script".into()) } else { Ok(lines) }
}

pub(super) fn play(text: &str) -> Result<(), String> {
    script::play(text, begin)
}

/// Moves a setting such as `timer.backoff` into the table of its group.
fn grouped(settings: Settings) -> serde_json::Value {
    let mut table = serde_json::json!({});
    for (key, value) in settings {
        match key.split_once('.') {
            Some((group, key)) => table[group][key] = value,
            None => table[key] = value,
        }
    }
    table
}

fn begin(mut settings: Settings) -> Result<Player, String> {
    let variant = settings.remove("variant").map_or("vanilla".into(), |name| name.as_str().unwrap_or("").to_string());
    let mut own = |key: &str| settings.remove(key).and_then(|value| value.as_u64());
    let (first_segment, segments, pace) = (own("first_segment").unwrap_or(0), own("segments"), own("pace"));
    // Scripts use the papers' TCP by default.
    settings.entry("rules").or_insert_with(|| "paper".into());
    let mut table = grouped(settings);
    if let Some(table) = table.as_object_mut() {
        Rules::complete(table);
    }
    let options: TcpOptions = serde_json::from_value(table).map_err(|e| e.to_string())?;
    let faults = options.check();
    if !faults.is_empty() {
        return Err(format!("{faults:?}"));
    }
    let config = TcpConfig::named(&variant, options.clone()).ok_or_else(|| format!("unknown variant {variant}"))?;
    let start = first_segment * options.mss.bytes;
    let sender = Sender::new(&config, CLOCK).starting_at(start);
    let sender = match segments {
        Some(segments) => sender.of_bytes(segments * options.mss.bytes),
        None => sender,
    };
    let sender = match pace {
        Some(interval) => sender.paced(Span(interval)),
        None => sender,
    };
    let receiver = Receiver::new(&config).starting_at(start);
    Ok(Player { sender, receiver, options, sent: Vec::new(), window: None, now: Time::default(), una: start })
}

#[test]
fn every_tcp_test_script_produces_the_events_that_it_expects() {
    play_all("tcp", 160, play);
}

/// Situations tested for every variant, each in a script called `VARIANT_SITUATION`.
const SITUATIONS: &[&str] = &[
    "single_loss", "two_losses", "many_losses", "lost_retransmission", "lost_acks", "reordering",
    "timeout_during_recovery", "window_shrinks_during_recovery", "zero_window_probe", "sequence_wrap", "scaled_window",
    "delayed_acks",
];

/// Situations tested with marks in the scripts `ecn_SITUATION` and `dctcp_SITUATION`.
const MARKED: &[(&str, &str)] = &[
    ("ecn", "halves_once_per_window"),
    ("ecn", "receiver_echoes_until_reduced"),
    ("ecn", "loss_and_mark_in_one_window"),
    ("ecn", "cubic"),
    ("ecn", "timeout"),
    ("dctcp", "reduces_by_half_of_alpha"),
    ("dctcp", "receiver_echoes_exactly"),
    ("dctcp", "loss_halves"),
];

/// Situations tested for CUBIC in the scripts `cubic_SITUATION`, in addition to a single loss under every variant.
const CUBIC: &[&str] = &[
    "concave_then_convex", "grows_as_reno_in_short_round_trips", "adds_a_segment_a_round_trip_once_back",
    "fast_convergence", "timeout_leaves_seven_tenths", "after_a_timeout_rises_from_where_it_is", "idle",
    "window_shrinks", "lost_acks", "delayed_acks",
];

#[test]
fn every_tcp_variant_and_cubic_have_a_test_script_for_every_situation() {
    let of_variant = |variant| SITUATIONS.iter().map(move |situation| (variant, format!("{variant}_{situation}")));
    let mut cells: Vec<_> =
        TcpConfig::NAMES.iter().flat_map(|&variant| of_variant(variant)).map(|cell| (cell, None)).collect();
    let cubic = Some("set congestion cubic");
    cells.extend(TcpConfig::NAMES.iter().map(|&variant| ((variant, format!("cubic_{variant}_single_loss")), cubic)));
    cells.extend(CUBIC.iter().map(|situation| (("", format!("cubic_{situation}")), cubic)));
    cells.extend(MARKED.iter().map(|(kind, situation)| (("", format!("{kind}_{situation}")), Some("set ecn on"))));
    let mut missing = Vec::new();
    for ((variant, name), setting) in cells {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp").join(format!("{name}.script"));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let wants = format!("set variant {variant}");
        let is_set = |setting: &str| text.lines().any(|line| line == setting);
        if text.is_empty() || !(variant.is_empty() || is_set(&wants)) || !setting.is_none_or(is_set) {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "missing or superfluous test scripts: {missing:?}");
}

#[test]
fn a_tcp_sender_test_script_with_a_wrong_expectation_fails() {
    assert!(play("start\n> 1").is_err(), "the wrong segment");
    assert!(play("start").is_err(), "an unexpected segment");
    assert!(play("start\n> 0\n> 1").is_err(), "the script expects one segment too many");
    assert!(play("start\n> 0 again").is_err(), "the script expects a retransmission, but the segment is new");
    assert!(play("start\n> 0\n= cwnd 2").is_err(), "a wrong value");
    assert!(play("start\n> 0\n= cwnd 1").is_ok());
}

#[test]
fn a_tcp_test_script_fails_if_a_repeated_line_has_a_wrong_expectation() {
    let begin = "start\n> 0\nack 1\n> 1 to 2\n";
    let play_on = |rest: &str| play(&format!("{begin}{rest}"));
    assert!(play_on("ack 2 to 3\n> 3 to 6").is_ok());
    assert!(play_on("ack 2 to 3\n> 3 to 5").is_err(), "one too few");
    assert!(play_on("ack 2 to 3\n> 3 to 7").is_err(), "the script expects one acknowledgement too many");
    assert!(
        play_on("ack 2 to 3\n> 3 to 6 again").is_err(),
        "the script expects retransmissions, but the segments are new"
    );
    assert!(play_on("ack 2 x2\n> 3 to 4").is_ok(), "the second acknowledgement is a duplicate");
    assert!(play_on("ack 2 x2\n> 3 to 5").is_err());
    for nothing in ["> 4 to 3", "> 1 x0", "ack 3 to 2", "ack to 2", "ack 1 to 2 to 3", "ack 2 xx"] {
        assert!(play_on(nothing).is_err(), "{nothing} says nothing");
    }
}

#[test]
fn a_tcp_receiver_test_script_with_a_wrong_expectation_fails() {
    assert!(play("receive 0\n< ack 1").is_ok());
    assert!(play("receive 0").is_err(), "an unexpected acknowledgement");
    assert!(play("receive 1\n< ack 2").is_err(), "the wrong acknowledgement");
    assert!(play("receive 0\n> 1").is_err(), "the script expects a segment, but an acknowledgement is sent");
    assert!(
        play("set delayed_acks 200ms\nreceive 0\n< ack 1").is_err(),
        "the script expects an acknowledgement that is still delayed"
    );
    assert!(play("delayed tick\n< ack 0").is_err(), "nothing waits");
}

#[test]
fn a_tcp_test_script_with_wrong_expected_sack_blocks_fails() {
    let begin = "set variant sack\nreceive 0\n< ack 1\nreceive 3\n";
    assert!(play(&format!("{begin}< ack 1 sack 3")).is_ok());
    assert!(play(&format!("{begin}< ack 1")).is_err(), "an unexpected block");
    assert!(play(&format!("{begin}< ack 1 sack 2")).is_err(), "the wrong block");
    let newest_first = format!("{begin}< ack 1 sack 3\nreceive 4 to 6\n< ack 1 sack 3-4\n< ack 1 sack 3-5\n");
    assert!(play(&format!("{newest_first}< ack 1 sack 3-6\nreceive 8\n< ack 1 sack 8 3-6")).is_ok());
    assert!(play(&format!("{newest_first}< ack 1 sack 3-6\nreceive 8\n< ack 1 sack 3-6 8")).is_err());
    assert!(
        play("set variant sack\nstart\n> 0\nack 0 sack").is_ok(),
        "the script expects an acknowledgement without SACK blocks"
    );
    assert!(play("set variant sack\nstart\n> 0\nack 0 lack 2").is_err());
}

#[test]
fn a_tcp_test_script_with_wrong_expected_congestion_marks_fails() {
    let play_on = |rest: &str| play(&format!("set ecn on\n{rest}"));
    assert!(play_on("receive 0 marked\n< ack 1 echo").is_ok());
    assert!(play_on("receive 0 marked\n< ack 1").is_err(), "the script lacks an ECN echo");
    assert!(play_on("receive 0\n< ack 1 echo").is_err(), "no mark arrived");
    assert!(play("receive 0 marked\n< ack 1 echo").is_err(), "the connection does not use ECN");
    assert!(play_on("start\n> 0\nack 1 echo\n> 1 reduced").is_ok());
    assert!(play_on("start\n> 0\nack 1 echo\n> 1").is_err(), "the script lacks a CWR flag");
    assert!(play_on("receive 0 lost\n< ack 1").is_err(), "an unknown flag");
}

#[test]
fn a_tcp_test_script_with_wrong_expected_times_fails() {
    let begin = "set pace 10\nstart\n> 0\nack 1\n";
    assert!(play(&format!("{begin}at 10\n> 1")).is_ok());
    assert!(play(&format!("{begin}at 9\n> 1")).is_err(), "the segment is sent too early");
    assert!(play(&format!("{begin}at 10")).is_err(), "an unexpected segment");
}

#[test]
fn a_test_script_with_contradictory_connection_settings_fails() {
    assert!(
        play("set mss 600B\nset receive_window 599B\nreceive 1\n< ack 0").is_err(),
        "the script has invalid options"
    );
    assert!(play("set variant reno2000\nreceive 1\n< ack 0").is_err(), "an unknown variant");
    assert!(play("set speed 3\nreceive 1\n< ack 0").is_err(), "an unknown setting");
    assert!(play("receive 1\n< ack 0\nset mss 600B").is_err(), "the setting comes after an event");
    assert!(play("= snd_wnd 3").is_err(), "an unknown variable");
    assert!(play("lose 3").is_err(), "an unknown event");
    assert!(play("# nothing\nset mss 600B").is_err(), "the script has no events");
}
