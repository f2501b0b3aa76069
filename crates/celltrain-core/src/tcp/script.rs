//! Timed scripts: what a connection's two ends do, one line a segment or an acknowledgement sent or received.
//!
//! A script (`tests/tcp/*.script`) begins with settings (`set KEY VALUE`), then alternates what happens with what must
//! follow at once:
//!
//! ```text
//! start            the connection begins to send
//! ack 3            an acknowledgement of the first three segments reaches the sender
//! window 4         acknowledgements that reach it from now on advertise four segments
//! tick 2           the retransmission clock ticks twice
//! receive 3        segment 3 reaches the receiver, whoever sent it
//! delayed tick     the receiver's delayed-acknowledgement timer ticks
//! > 0              the sender sends segment 0
//! > 4 again        the sender sends segment 4, which it sent before
//! < ack 3          the receiver acknowledges the first three segments
//! = cwnd 2         a variable's value: cwnd, ssthresh (segments), rto (ticks)
//! ```
//!
//! `7 to 9` in such a line stands for a line for 7, one for 8 and one for 9 (`ack 7 to 9`, `> 7 to 9 again`); `x5` at its
//! end for the same line five times (`ack 7 x5`). Segments count from 0, so `ack 7` acknowledges 0 to 6 and asks for 7.
//!
//! Everything sent must be written down: a script fails on a segment too many as on one too few. `#` begins a comment,
//! where the sentence of the source that asks for the behaviour stands.

use std::collections::VecDeque;
use std::fmt::Write;
use std::path::Path;

use super::{Ack, Receiver, Segment, Sender, TcpConfig, TcpOptions, window_scale};

struct Player {
    sender: Sender,
    receiver: Receiver,
    options: TcpOptions,
    /// What was sent and not yet written down, as the script writes it.
    sent: VecDeque<String>,
    window: Option<u64>,
}

impl Player {
    /// Plays a line after the settings; why it does not hold.
    fn play(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            [">" | "<", ..] => {
                for expected in lines(words)? {
                    match self.sent.pop_front() {
                        Some(sent) if sent == expected => {}
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
                    _ => return Err("unknown variable".into()),
                };
                let expected: f64 = expected.parse().map_err(|e| format!("{expected:?}: {e}"))?;
                if (value - expected).abs() > TOLERANCE {
                    return Err(format!("it is {value}"));
                }
            }
            _ if !self.sent.is_empty() => return Err(format!("before it, {:?} were sent unasked", self.sent)),
            _ => {
                for event in lines(words)? {
                    self.happen(&event.split(' ').collect::<Vec<_>>())?;
                }
            }
        }
        Ok(())
    }

    fn happen(&mut self, words: &[&str]) -> Result<(), String> {
        let mss = self.options.mss.bytes;
        let ack = match words {
            ["receive", segment] => {
                let len = u32::try_from(mss).map_err(|e| e.to_string())?;
                self.receiver.on_segment(Segment { seq: number(segment)? * mss, len })
            }
            ["delayed", "tick"] => self.receiver.on_delayed_ack_tick(),
            words => return self.happen_to_sender(words),
        };
        self.sent.extend(ack.map(|ack| format!("< ack {}", ack.ack / mss)));
        Ok(())
    }

    fn happen_to_sender(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["start"] => {}
            ["ack", segments] => {
                let window = self.window.unwrap_or(self.options.receive_window.bytes);
                let scale = window_scale(self.options.receive_window.bytes);
                let ack = number(segments)? * self.options.mss.bytes;
                let window = u16::try_from(window >> scale).map_err(|e| e.to_string())?;
                self.sender.on_ack(Ack { ack, window });
            }
            ["tick"] => self.sender.on_tick(),
            ["tick", times] => {
                for _ in 0..number(times)? {
                    self.sender.on_tick();
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
            let Some(segment) = self.sender.next_segment() else { break };
            assert_eq!((segment.seq % mss, u64::from(segment.len)), (0, mss), "only full segments are sent (A-17)");
            let again = if self.sender.counters().retransmitted_segments > retransmitted { " again" } else { "" };
            self.sent.push_back(format!("> {}{again}", segment.seq / mss));
        }
    }
}

/// Scripts write four decimals.
const TOLERANCE: f64 = 1e-4;

/// The lines that one stands for: one for each number of `A to B`, N for `xN` at the end.
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
        _ => return Err("`to` stands between two numbers".into()),
    };
    if lines.is_empty() { Err("it stands for no line".into()) } else { Ok(lines) }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|e| format!("{word:?}: {e}"))
}

/// Plays a script; the first line that does not hold, in words.
fn play(text: &str) -> Result<(), String> {
    let mut variant = "vanilla".to_string();
    let mut settings = serde_json::Map::new();
    let mut player: Option<Player> = None;
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let outcome = match words.as_slice() {
            [] => Ok(()),
            ["set", ..] if player.is_some() => Err("settings stand before the first event".into()),
            ["set", "variant", name] => {
                variant = (*name).to_string();
                Ok(())
            }
            ["set", key, value] => {
                let value = value.parse::<u64>().map_or_else(|_| (*value).into(), serde_json::Value::from);
                settings.insert((*key).to_string(), value);
                Ok(())
            }
            words => match &mut player {
                Some(playing) => playing.play(words),
                None => begin(&variant, &settings).and_then(|playing| player.insert(playing).play(words)),
            },
        };
        outcome.map_err(|why| format!("line {number}: `{}`: {why}", line.trim()))?;
    }
    match player {
        Some(player) if player.sent.is_empty() => Ok(()),
        Some(player) => Err(format!("at the end, {:?} were sent unasked", player.sent)),
        None => Err("the script does nothing".into()),
    }
}

fn begin(variant: &str, settings: &serde_json::Map<String, serde_json::Value>) -> Result<Player, String> {
    let options: TcpOptions =
        serde_json::from_value(serde_json::Value::Object(settings.clone())).map_err(|e| e.to_string())?;
    let faults = options.check();
    if !faults.is_empty() {
        return Err(format!("{faults:?}"));
    }
    let config = TcpConfig::named(variant, options.clone()).ok_or_else(|| format!("unknown variant {variant}"))?;
    let (sender, receiver) = (Sender::new(&config), Receiver::new(&options));
    Ok(Player { sender, receiver, options, sent: VecDeque::new(), window: None })
}

#[test]
fn every_script_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 40, "the scripts are found");
    let mut failures = String::new();
    for path in paths {
        if let Err(why) = play(&std::fs::read_to_string(&path).unwrap()) {
            writeln!(failures, "{}: {why}", path.file_name().unwrap().display()).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn a_script_that_does_not_hold_fails() {
    assert!(play("start\n> 1").is_err(), "the wrong segment");
    assert!(play("start").is_err(), "a segment not written down");
    assert!(play("start\n> 0\n> 1").is_err(), "a segment too many");
    assert!(play("start\n> 0 again").is_err(), "a first sending taken for a second");
    assert!(play("start\n> 0\n= cwnd 2").is_err(), "a wrong value");
    assert!(play("start\n> 0\n= cwnd 1").is_ok());
}

#[test]
fn a_run_of_lines_that_does_not_hold_fails() {
    let begin = "start\n> 0\nack 1\n> 1 to 2\n";
    let play_on = |rest: &str| play(&format!("{begin}{rest}"));
    assert!(play_on("ack 2 to 3\n> 3 to 6").is_ok());
    assert!(play_on("ack 2 to 3\n> 3 to 5").is_err(), "one too few");
    assert!(play_on("ack 2 to 3\n> 3 to 7").is_err(), "one too many");
    assert!(play_on("ack 2 to 3\n> 3 to 6 again").is_err(), "a run of first sendings taken for second ones");
    assert!(play_on("ack 2 x2\n> 3 to 4").is_ok(), "the second acknowledgement is a duplicate");
    assert!(play_on("ack 2 x2\n> 3 to 5").is_err());
    for nothing in ["> 4 to 3", "> 1 x0", "ack 3 to 2", "ack to 2", "ack 1 to 2 to 3", "ack 2 xx"] {
        assert!(play_on(nothing).is_err(), "{nothing} says nothing");
    }
}

#[test]
fn a_receivers_script_that_does_not_hold_fails() {
    assert!(play("receive 0\n< ack 1").is_ok());
    assert!(play("receive 0").is_err(), "an acknowledgement not written down");
    assert!(play("receive 1\n< ack 2").is_err(), "the wrong acknowledgement");
    assert!(play("receive 0\n> 1").is_err(), "an acknowledgement taken for a segment");
    assert!(play("set delayed_acks 200ms\nreceive 0\n< ack 1").is_err(), "an acknowledgement that still waits");
    assert!(play("delayed tick\n< ack 0").is_err(), "nothing waits");
}

#[test]
fn a_script_for_a_connection_that_cannot_be_fails() {
    assert!(play("set mss 600B\nset receive_window 599B\nreceive 1\n< ack 0").is_err(), "options that are refused");
    assert!(play("set variant reno2000\nreceive 1\n< ack 0").is_err(), "an unknown variant");
    assert!(play("set speed 3\nreceive 1\n< ack 0").is_err(), "an unknown setting");
    assert!(play("receive 1\n< ack 0\nset mss 600B").is_err(), "a setting too late");
    assert!(play("= snd_wnd 3").is_err(), "an unknown variable");
    assert!(play("lose 3").is_err(), "an unknown event");
    assert!(play("# nothing\nset mss 600B").is_err(), "a script that does nothing");
}
