//! Timed scripts: what a sender does, one line a segment sent or an acknowledgement received.
//!
//! A script (`tests/tcp/*.script`) begins with settings (`set KEY VALUE`), then alternates what happens with what must
//! follow at once:
//!
//! ```text
//! start            the connection begins to send
//! ack 3            an acknowledgement of the first three segments arrives
//! tick 2           the retransmission clock ticks twice
//! > 0              the sender sends segment 0
//! > 4 again        the sender sends segment 4, which it sent before
//! = cwnd 2         a variable's value: cwnd, ssthresh (segments), rto (ticks)
//! ```
//!
//! Every segment sent must be written down: a script fails on one too many as on one too few. `#` begins a comment, where
//! the sentence of the source that asks for the behaviour stands.

use std::fmt::Write;
use std::path::Path;

use super::{Ack, Sender, TcpConfig, TcpOptions, window_scale};

struct Player {
    sender: Sender,
    options: TcpOptions,
    sent: Vec<String>,
    window: Option<u64>,
}

impl Player {
    fn collect(&mut self) {
        let before = |sender: &Sender| sender.counters().retransmitted_segments;
        loop {
            let retransmitted = before(&self.sender);
            let Some(segment) = self.sender.next_segment() else { break };
            let again = if before(&self.sender) > retransmitted { " again" } else { "" };
            self.sent.push(format!("{}{again}", segment.seq / self.options.mss.bytes));
        }
    }

    fn happen(&mut self, words: &[&str]) -> Result<(), String> {
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
        let fail = |why: String| Err(format!("line {number}: `{}`: {why}", line.trim()));
        match words.as_slice() {
            [] => {}
            ["set", "variant", name] => variant = (*name).to_string(),
            ["set", key, value] => {
                let value = value.parse::<u64>().map_or_else(|_| (*value).into(), serde_json::Value::from);
                settings.insert((*key).to_string(), value);
            }
            words => {
                let playing = match &mut player {
                    Some(playing) => playing,
                    None => player.insert(begin(&variant, &settings)?),
                };
                match words {
                    [">", rest @ ..] => {
                        if playing.sent.is_empty() {
                            return fail("nothing was sent".into());
                        }
                        let sent = playing.sent.remove(0);
                        if sent != rest.join(" ") {
                            return fail(format!("segment {sent} was sent"));
                        }
                    }
                    ["=", name, expected] => {
                        let value = match *name {
                            "cwnd" => playing.sender.cwnd(),
                            "ssthresh" => playing.sender.ssthresh(),
                            "rto" => f64::from(playing.sender.rto()),
                            _ => return fail("unknown variable".into()),
                        };
                        let expected: f64 = expected.parse().map_err(|e| format!("line {number}: {e}"))?;
                        if (value - expected).abs() > 1e-3 {
                            return fail(format!("it is {value}"));
                        }
                    }
                    event => {
                        if !playing.sent.is_empty() {
                            return fail(format!("before it, segments {:?} were sent unasked", playing.sent));
                        }
                        if let Err(why) = playing.happen(event) {
                            return fail(why);
                        }
                    }
                }
            }
        }
    }
    match player {
        Some(player) if player.sent.is_empty() => Ok(()),
        Some(player) => Err(format!("at the end, segments {:?} were sent unasked", player.sent)),
        None => Err("the script does nothing".into()),
    }
}

fn begin(variant: &str, settings: &serde_json::Map<String, serde_json::Value>) -> Result<Player, String> {
    let options: TcpOptions =
        serde_json::from_value(serde_json::Value::Object(settings.clone())).map_err(|e| e.to_string())?;
    let config = TcpConfig::named(variant, options.clone()).ok_or_else(|| format!("unknown variant {variant}"))?;
    Ok(Player { sender: Sender::new(&config), options, sent: Vec::new(), window: None })
}

#[test]
fn every_script_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 10, "the scripts are found");
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
    assert!(play("start\n> 0\n= cwnd 2").is_err(), "a wrong value");
    assert!(play("start\n> 0\n= cwnd 1").is_ok());
}
