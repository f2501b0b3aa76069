//! Timed scripts that test the ABR source and destination at one end of a VC. A line describes a cell sent or received.
//!
//! The settings of a script (`tests/abr/*.script`, read by [`crate::script`]) are parameters, `link_rate` and
//! `round_trip`. The lines of a script:
//!
//! ```text
//! data 100                     a hundred more data cells wait to be sent
//! at 5000                      it is 5000 us; cells that could start before have been sent
//! receive brm ci er 500        a backward RM cell comes back: flags bn, ci, ni; er, ccr, mcr in cells per second
//! receive frm ccr 100          a forward RM cell of the other direction comes to the destination here
//! receive data efci            a marked data cell comes to the destination here
//! > 0 frm ccr 1000             a forward RM cell was sent at 0 us, with these flags; other rates may have any value
//! > 1000 data                  a data cell was sent
//! > 1000 data x31 every 1000   31 data cells were sent, 1000 us apart
//! > 32000 brm ci               a backward RM cell was sent
//! > 0 out_of_rate frm          a forward RM cell was sent out of rate
//! > 0 frm clp=0                the header has this CLP; `efci=0` checks EFCI, and both also work for data cells
//! data 100 efci                data cells that a switch has marked arrive at the edge device
//! = acr 1000                   a variable's value: acr (cells per second), next (us), overwritten, answered
//! ```
//!
//! The link's rate is 424 Mbps by default, so a cell takes 1 us, and 424 kbps are 1000 cells a second. Arrivals at an
//! instant are handled before cells that start at that instant.
//!
//! A script must list every cell sent. Each script runs three times: with data cells sent one by one; with trains sent
//! ahead of time, whose cells are taken back if an event occurs before they start; and through a [`ShapedPort`], which
//! also checks cell headers.

use super::{Destination, Kind, Parameters, RateFormat, RmCell, Source, cells_per_second};
use crate::cell::{Cell, FrameNumber, Run};
use crate::edge_device::{EdgeBuffer, EdgeConfig};
use crate::index::Label;
use crate::script::{self, Settings, TOLERANCE, compare, number, play_all};
use crate::shaped_port::ShapedPort;
use crate::units::{BitRate, Clock, Duration, Time};

/// Times in scripts are in microseconds.
const CLOCK: Clock = Clock::exact(1_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    OneByOne,
    Trains,
    Port,
}

#[derive(Debug)]
struct Sent {
    at: Time,
    kind: String,
    content: Option<RmCell>,
    /// The cell that the port sent, if any.
    cell: Option<Cell>,
}

/// The sender.
enum End {
    Source(Box<Source>),
    Port(Box<ShapedPort>),
}

struct Player {
    end: End,
    destination: Destination,
    pcr: f64,
    rate_format: RateFormat,
    mode: Mode,
    now: Time,
    data: u32,
    packets: u32,
    sent: Vec<Sent>,
}

impl script::Player for Player {
    type Sent = Sent;

    fn play(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            [">", at, words @ ..] => return self.expect(number(at)?, words),
            ["=", name, expected] => return self.compare(name, expected),
            _ => self.expect_silence().map_err(|why| format!("before this line, {why}"))?,
        }
        match words {
            ["at", microseconds] => {
                let until = Time(number(microseconds)?);
                if until < self.now {
                    return Err(format!("the time is already {}", self.now.0));
                }
                self.run(until)?;
            }
            ["data", cells] => self.data_comes(number(cells)?, false),
            ["data", cells, "efci"] => self.data_comes(number(cells)?, true),
            ["receive", "data"] => self.destination.on_data(false),
            ["receive", "data", "efci"] => self.destination.on_data(true),
            ["receive", kind, words @ ..] => {
                let mut rm = self.rm_cell(words)?;
                match *kind {
                    "frm" => {
                        let rm = as_read(&rm, self.rate_format);
                        let turned = self.destination.turn_around(&rm);
                        match &mut self.end {
                            End::Source(source) => source.turn_around(turned),
                            End::Port(port) => port.turn_around(Label::new(0), turned),
                        }
                    }
                    "brm" => {
                        rm.backward = true;
                        let rm = as_read(&rm, self.rate_format);
                        match &mut self.end {
                            End::Source(source) => source.on_backward_rm(&rm, self.now),
                            End::Port(port) => port.on_backward_rm(Label::new(0), &rm, self.now),
                        }
                    }
                    _ => return Err("a cell is `frm`, `brm` or `data`".into()),
                }
            }
            _ => return Err("unknown line".into()),
        }
        Ok(())
    }

    fn unexpected(&self) -> &[Sent] {
        &self.sent
    }
}

impl Player {
    /// Adds data to send. A port receives the data as a packet, whose cells carry EFCI if `marked`.
    fn data_comes(&mut self, cells: u64, marked: bool) {
        let cells = u32::try_from(cells).expect("the number of cells in a script fits in 32 bits");
        match &mut self.end {
            End::Source(_) => self.data += cells,
            End::Port(port) => {
                self.packets += 1;
                port.on_cells(Run {
                    last: Cell::new(Label::new(0), FrameNumber::new(self.packets), true).with_efci(marked),
                    cells,
                });
            }
        }
    }

    /// Returns a forward RM cell with these flags and rates; `clp` means out of rate.
    fn rm_cell(&self, words: &[&str]) -> Result<RmCell, String> {
        let mut rm = RmCell::forward(self.pcr, 0.0, 0.0);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut rate = || words.next().ok_or("a rate is missing").and_then(|w| w.parse().map_err(|_| "no rate"));
            match *word {
                "bn" => rm.bn = true,
                "ci" => rm.ci = true,
                "ni" => rm.ni = true,
                "clp" => rm.out_of_rate = true,
                "er" => rm.er = rate()?,
                "ccr" => rm.ccr = rate()?,
                "mcr" => rm.mcr = rate()?,
                _ => return Err(format!("an RM cell has no field {word:?}")),
            }
        }
        Ok(rm)
    }

    /// Sends the cells that can start before `until`.
    fn run(&mut self, until: Time) -> Result<(), String> {
        while let End::Port(port) = &mut self.end {
            let Some(start) = port.next_start().map(|next| next.max(self.now)).filter(|&start| start < until) else {
                self.now = until;
                return Ok(());
            };
            self.now = start;
            let (run, _) = port.send(start, None).ok_or("no cell was sent at the scheduled time")?;
            let cell = run.last;
            let content = cell.is_rm().then(|| *port.rm(Label::new(0), cell.frame));
            let kind = content.map_or("data", |rm| kind_of(&RmCell { out_of_rate: cell.tagged(), ..rm }));
            self.note(start, kind, content, Some(cell));
        }
        loop {
            let data_waits = self.data > 0;
            let source = self.source();
            let Some(start) = source.next_start(data_waits).map(|next| next.max(self.now)) else { break };
            if start >= until {
                break;
            }
            self.now = start;
            if self.source().goes_out_of_rate(start, data_waits) {
                let content = self.source().sent_out_of_rate(start);
                self.note(start, kind_of(&content), Some(content), None);
                continue;
            }
            let data_waits = self.data > 0;
            match self.source().next_kind(start, data_waits).expect("data or an RM cell is waiting") {
                Kind::Data => self.send_data(start, until),
                kind => {
                    let content = self.source().sent(start, kind).expect("the cell to send is an RM cell");
                    self.note(start, kind_of(&content), Some(content), None);
                }
            }
        }
        self.now = until;
        Ok(())
    }

    /// Returns the source of a script that runs without a port.
    fn source(&mut self) -> &mut Source {
        match &mut self.end {
            End::Source(source) => source,
            End::Port(_) => panic!("this script tests a port, so it has no source"),
        }
    }

    fn send_data(&mut self, start: Time, until: Time) {
        let interval = self.source().interval();
        let cells = match self.mode {
            Mode::OneByOne | Mode::Port => {
                self.source().sent(start, Kind::Data);
                1
            }
            Mode::Trains => {
                // If an out-of-rate cell may come between two data cells, send only one cell ahead.
                let waiting = self.data;
                let source = self.source();
                let most = if source.next_out_of_rate(true).is_some() { 1 } else { waiting };
                let ahead = source.data_cells_until_rm(start).min(most);
                source.sent_data(start, ahead);
                let started = (0..ahead).take_while(|&i| start + interval * u64::from(i) < until);
                let started =
                    u32::try_from(started.count()).expect("the number of cells is at most the number of sent cells");
                source.unsend_data(ahead - started);
                started
            }
        };
        self.data -= cells;
        for i in 0..cells {
            self.note(start + interval * u64::from(i), "data", None, None);
        }
    }

    fn note(&mut self, at: Time, kind: &str, content: Option<RmCell>, cell: Option<Cell>) {
        let content = content.map(|content| as_read(&content, self.rate_format));
        self.sent.push(Sent { at, kind: kind.into(), content, cell });
    }

    fn expect(&mut self, at: u64, words: &[&str]) -> Result<(), String> {
        if let ["data", cells, "every", interval, header @ ..] = words {
            let cells = cells.strip_prefix('x').ok_or("`xN` is missing")?;
            let interval = number(interval)?;
            return (0..number(cells)?).try_for_each(|i| self.expect(at + i * interval, &[&["data"], header].concat()));
        }
        if self.sent.is_empty() {
            return Err("the acknowledged cell was not sent".into());
        }
        let sent = self.sent.remove(0);
        let (kind, words) = match words {
            ["out_of_rate", "frm", words @ ..] => ("out_of_rate frm", words),
            ["out_of_rate", "brm", words @ ..] => ("out_of_rate brm", words),
            [kind, words @ ..] => (*kind, words),
            [] => return Err("a cell's kind is missing".into()),
        };
        let wrong = || Err(format!("{sent:?} was sent"));
        let bits = |cell: Cell| {
            [("clp=0", !cell.tagged()), ("clp=1", cell.tagged()), ("efci=0", !cell.efci()), ("efci=1", cell.efci())]
        };
        let (header, words): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.contains('='));
        let holds = |word: &str, cell: Cell| bits(cell).contains(&(word, true));
        if sent.cell.is_some_and(|cell| !header.iter().all(|word| holds(word, cell))) {
            return wrong();
        }
        if sent.at != Time(at) || sent.kind != kind {
            return wrong();
        }
        let Some(content) = sent.content else {
            return if words.is_empty() { Ok(()) } else { Err("a data cell has no rates".into()) };
        };
        let mut expected = self.rm_cell(&words)?;
        // If the script line omits a rate, the rate may have any value.
        for (name, rate, sent) in [
            ("er", &mut expected.er, content.er),
            ("ccr", &mut expected.ccr, content.ccr),
            ("mcr", &mut expected.mcr, content.mcr),
        ] {
            if !words.contains(&name) || (*rate - sent).abs() <= TOLERANCE {
                *rate = sent;
            }
        }
        expected.backward = kind.ends_with("brm");
        expected.out_of_rate = kind.starts_with("out_of_rate");
        if expected == content { Ok(()) } else { wrong() }
    }

    fn compare(&self, name: &str, expected: &str) -> Result<(), String> {
        let source = match &self.end {
            End::Source(source) => source,
            End::Port(port) => port.source(Label::new(0)).expect("the VC is under rate control"),
        };
        let counters = source.counters();
        let value = match name {
            "acr" => source.acr(),
            "next" => source.next_departure().0 as f64,
            "overwritten" => counters.overwritten as f64,
            "answered" => counters.backward_rm_received as f64,
            _ => return Err("unknown variable".into()),
        };
        compare(value, expected)
    }
}

/// Returns the kind of an RM cell as written in a script.
fn kind_of(rm: &RmCell) -> &'static str {
    match (rm.out_of_rate, rm.backward) {
        (false, false) => "frm",
        (false, true) => "brm",
        (true, false) => "out_of_rate frm",
        (true, true) => "out_of_rate brm",
    }
}

/// Returns the content of an RM cell as the other end reads it: rates are rounded if the VC uses the rate format of RM
/// cells.
fn as_read(content: &RmCell, rate_format: RateFormat) -> RmCell {
    let read = |rate| rate_format.through_cell(rate);
    RmCell { er: read(content.er), ccr: read(content.ccr), mcr: read(content.mcr), ..*content }
}

fn play(text: &str, mode: Mode) -> Result<(), String> {
    script::play(text, |settings| begin(settings, mode))
}

fn begin(mut settings: Settings, mode: Mode) -> Result<Player, String> {
    let mut own = |key| settings.remove(key).and_then(|value| value.as_str().map(String::from));
    let link_rate: BitRate = own("link_rate").as_deref().unwrap_or("424Mbps").parse()?;
    let round_trip: Duration = own("round_trip").as_deref().unwrap_or("6ms").parse()?;
    let parameters: Parameters =
        serde_json::from_value(serde_json::Value::Object(settings)).map_err(|e| e.to_string())?;
    let faults = parameters.check(link_rate);
    if !faults.is_empty() {
        return Err(format!("{faults:?}"));
    }
    let source = Source::new(&parameters, link_rate, round_trip, CLOCK);
    let end = match mode {
        Mode::OneByOne | Mode::Trains => End::Source(Box::new(source)),
        Mode::Port => {
            let buffer = EdgeBuffer::new(&EdgeConfig::default(), 1, &[1]);
            let rate = cells_per_second(link_rate);
            End::Port(Box::new(ShapedPort::new(CLOCK.cell_time(link_rate), rate, buffer, vec![Some(source)])))
        }
    };
    Ok(Player {
        end,
        destination: Destination::new(),
        pcr: parameters.rates(link_rate, round_trip).pcr,
        rate_format: parameters.rate_format,
        mode,
        now: Time::default(),
        data: 0,
        packets: 0,
        sent: Vec::new(),
    })
}

#[test]
fn every_abr_test_script_produces_the_events_that_it_expects() {
    for mode in [Mode::OneByOne, Mode::Trains, Mode::Port] {
        play_all("abr", 35, |text| play(text, mode).map_err(|why| format!("{mode:?}: {why}")));
    }
}

#[test]
fn an_abr_test_script_with_a_wrong_expectation_fails() {
    let play_on = |rest: &str| play(&format!("set icr 424kbps\ndata 9\nat 2500\n{rest}"), Mode::OneByOne);
    assert!(play_on("> 0 frm ccr 1000\n> 1000 data x2 every 1000\n= acr 1000").is_ok());
    assert!(play_on("> 0 frm\n> 1000 data").is_err(), "the script lacks a cell that was sent");
    assert!(play_on("> 0 frm\n> 1000 data x3 every 1000").is_err(), "the script expects one cell too many");
    assert!(play_on("> 0 frm ci\n> 1000 data x2 every 1000").is_err(), "a wrong flag");
    assert!(play_on("> 0 frm ccr 1001\n> 1000 data x2 every 1000").is_err(), "a wrong rate");
    assert!(play_on("> 0 frm\n> 1001 data\n> 2000 data").is_err(), "a wrong time");
    let play_port = |rest: &str| play(&format!("set icr 424kbps\ndata 9 efci\nat 1500\n{rest}"), Mode::Port);
    assert!(play_port("> 0 frm clp=0\n> 1000 data clp=0 efci=0").is_ok());
    assert!(play_port("> 0 frm clp=1\n> 1000 data").is_err(), "a wrong CLP");
    assert!(play_port("> 0 frm\n> 1000 data efci=1").is_err(), "a wrong EFCI");
    assert!(play_port("> 0 frm\n> 1000 data clp=2").is_err(), "no such bit");
    assert!(play_on("> 0 brm\n> 1000 data x2 every 1000").is_err(), "a wrong kind");
    assert!(play_on("> 0 frm\n> 1000 data x2 every 1000\n= acr 999").is_err(), "a wrong value");
}
