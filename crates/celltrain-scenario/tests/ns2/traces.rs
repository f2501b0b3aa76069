//! The reference traces of ns-2, as times and packet numbers.

use std::collections::BTreeMap;

/// A packet at the point where ns-2 traces it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Packet {
    /// Time in seconds.
    pub(super) time: f64,
    /// The packet's number modulo [`WRAP`]. For an acknowledgement, the number of the last packet that it acknowledges.
    pub(super) number: u64,
    /// True if the packet is lost at this point.
    pub(super) lost: bool,
}

/// Number of packets after which the packet numbers in a trace begin again at 0.
pub(super) const WRAP: u64 = 90;

/// The traces of a test: `data1` and `acks1` for the first connection, and so on.
pub(super) type Trace = BTreeMap<String, Vec<Packet>>;

/// Reads the traces of a suite, by test. The map is empty if the suite has no traces.
pub(super) fn of_suite(suite: &str) -> BTreeMap<String, Trace> {
    let mut traces: BTreeMap<String, Trace> = BTreeMap::new();
    let lines = std::fs::read_to_string(super::folder().join(format!("traces/{suite}.txt"))).unwrap();
    for line in lines.lines() {
        let mut words = line.split(' ');
        let [test, what] =
            [(); 2].map(|()| words.next().expect("the line names a test and a kind of event").to_string());
        traces.entry(test).or_default().insert(what, packets(words));
    }
    traces
}

/// Reads packets from words of the form `STEP@NUMBER!*TIMES`: the time since the previous packet in units of 10 us, the
/// number of the packet (absent if it is the next number), a mark of a loss, and the number of repetitions.
fn packets<'a>(words: impl Iterator<Item = &'a str>) -> Vec<Packet> {
    let whole = |text: &str| -> u64 { text.parse().unwrap_or_else(|_| panic!("{text} is a number")) };
    let mut packets = Vec::new();
    let (mut time, mut number) = (0, WRAP - 1);
    for word in words {
        let (word, times) = word.split_once('*').map_or((word, 1), |(word, times)| (word, whole(times)));
        let (word, lost) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
        let (step, jump) = word.split_once('@').map_or((word, None), |(step, to)| (step, Some(whole(to))));
        for _ in 0..times {
            time += whole(step);
            number = jump.unwrap_or((number + 1) % WRAP);
            packets.push(Packet { time: time as f64 / 1e5, number, lost });
        }
    }
    packets
}

#[test]
fn the_ns2_trace_encoding_represents_steps_jumps_losses_and_repetitions_of_packet_numbers() {
    let read: Vec<_> = packets("100 5@13*2 7! 1@89 1".split(' ')).iter().map(|p| (p.number, p.lost)).collect();
    assert_eq!(read, [(0, false), (13, false), (13, false), (14, true), (89, false), (0, false)]);
    let times: Vec<_> = packets("100 5*2".split(' ')).iter().map(|packet| packet.time).collect();
    assert_eq!(times, [0.001, 0.00105, 0.0011]);
}
