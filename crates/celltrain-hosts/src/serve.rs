//! Stacks as programs, for `celltrain bottleneck` and every other command: calls arrive on standard input, packets leave
//! on standard output, which carries nothing else, so a program logs to standard error.
//!
//! The other side is a stack class in Python, `examples/own-stack/program.py`. Numbers are little-endian. The input starts
//! with the version of this form (1 byte) and the end of the flow: side (1 byte, 0 for the sender), its own address and
//! the other end's (4 bytes each), seed (8 bytes). Then each call is a letter and the time in nanoseconds (8 bytes): `p`, with length (4 bytes) and bytes of a
//! packet, which has no answer; and `q`, whose answer is the number of packets (4 bytes), each with its length, the next
//! timeout (8 bytes, all bits set for none), the received bytes (8 bytes), and 1 if the transfer is complete (1 byte).

use std::io::{self, ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use celltrain_core::index::FlowIndex;

use crate::stack::{Endpoint, Packet, Side, Stack};

const VERSION: u8 = 1;

/// Runs one end of a flow as a program until its standard input ends. `make` creates the stack.
///
/// # Errors
/// If the input does not have this form, or the output cannot be written.
pub fn serve(make: impl FnOnce(Endpoint) -> Box<dyn Stack>) -> io::Result<()> {
    serve_between(io::stdin().lock(), io::BufWriter::new(io::stdout().lock()), make)
}

fn serve_between(
    mut input: impl Read,
    mut output: impl Write,
    make: impl FnOnce(Endpoint) -> Box<dyn Stack>,
) -> io::Result<()> {
    let side = match bytes(&mut input)? {
        [VERSION, 0] => Side::Sender,
        [VERSION, 1] => Side::Receiver,
        other => return Err(wrong(format!("the input starts with {other:?}, not with version {VERSION} and a side"))),
    };
    let (local, remote) = (Ipv4Addr::from(bytes::<4>(&mut input)?), Ipv4Addr::from(bytes::<4>(&mut input)?));
    let pair = Endpoint::pair_number(local)
        .ok_or_else(|| wrong(format!("{local} is not the address of an end of a connection")))?;
    let seed = u64::from_le_bytes(bytes(&mut input)?);
    let mut stack = make(Endpoint { flow: FlowIndex::new(pair), side, local, remote, seed });
    let mut packets = Vec::new();
    loop {
        let call = match bytes::<1>(&mut input) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            call => call?,
        };
        let now = Duration::from_nanos(u64::from_le_bytes(bytes(&mut input)?));
        match call {
            [b'p'] => {
                let mut packet = vec![0; u32::from_le_bytes(bytes(&mut input)?) as usize];
                input.read_exact(&mut packet)?;
                stack.on_packet(now, &packet);
            }
            [b'q'] => {
                stack.poll(now, &mut packets);
                answer(&mut output, &mut packets, stack.as_ref())?;
            }
            [other] => {
                return Err(wrong(format!("the call {other:#04x} is neither p (0x70) nor q (0x71)")));
            }
        }
    }
}

fn answer(output: &mut impl Write, packets: &mut Vec<Packet>, stack: &dyn Stack) -> io::Result<()> {
    let length = |of: usize| u32::try_from(of).expect("packets and their number fit in 32 bits").to_le_bytes();
    output.write_all(&length(packets.len()))?;
    for packet in packets.drain(..) {
        output.write_all(&length(packet.len()))?;
        output.write_all(&packet)?;
    }
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let report = stack.report();
    output.write_all(&stack.next_timeout().map_or(u64::MAX, nanoseconds).to_le_bytes())?;
    output.write_all(&report.received.to_le_bytes())?;
    output.write_all(&[u8::from(report.completed)])?;
    output.flush()
}

fn wrong(problem: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, problem)
}

fn bytes<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Report;

    /// Sends each arrived packet back, after the time of the poll. Its timeout is one second later.
    struct Echo(Endpoint, Vec<Packet>, u64);

    impl Stack for Echo {
        fn on_packet(&mut self, _now: Duration, packet: &[u8]) {
            self.1.push(packet.to_vec());
        }

        fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
            self.2 += 1;
            out.push(now.as_nanos().to_le_bytes().to_vec());
            out.append(&mut self.1);
        }

        fn next_timeout(&self) -> Option<Duration> {
            (self.2 < 2).then(|| Duration::from_secs(self.2))
        }

        fn report(&self) -> Report {
            Report { received: self.0.seed, completed: self.2 == 2, ..Report::default() }
        }
    }

    fn served(calls: &[u8]) -> (io::Result<()>, Vec<u8>) {
        let end = [&[VERSION, 1][..], &[10, 0, 0, 14], &[10, 0, 0, 13], &7_u64.to_le_bytes()].concat();
        let mut output = Vec::new();
        let result = serve_between(&[&end, calls].concat()[..], &mut output, |end| {
            assert_eq!((end.flow, end.side), (FlowIndex::new(3), Side::Receiver));
            assert_eq!((end.local, end.remote), (Ipv4Addr::new(10, 0, 0, 14), Ipv4Addr::new(10, 0, 0, 13)));
            Box::new(Echo(end, Vec::new(), 0))
        });
        (result, output)
    }

    #[test]
    fn a_stack_program_answers_each_poll_with_packets_a_timeout_and_a_report() {
        let time = 5_u64.to_le_bytes();
        let packet = [&b"p"[..], &time, &3_u32.to_le_bytes(), b"abc"].concat();
        let poll = [&b"q"[..], &time].concat();
        let (result, output) = served(&[packet, poll.clone(), poll].concat());
        result.expect("the input is complete");
        let first = [&16_u32.to_le_bytes()[..], &5_u128.to_le_bytes()].concat();
        let received = 7_u64.to_le_bytes();
        let expected = [
            &[2, 0, 0, 0][..],
            &first,
            &[3, 0, 0, 0],
            b"abc",
            &1_000_000_000_u64.to_le_bytes(),
            &received,
            &[0],
            &[1, 0, 0, 0],
            &first,
            &u64::MAX.to_le_bytes(),
            &received,
            &[1],
        ];
        assert_eq!(output, expected.concat());
    }

    #[test]
    fn an_unknown_or_incomplete_call_ends_a_stack_program_with_an_error() {
        let kind = |calls: &[u8]| served(calls).0.map_err(|error| error.kind());
        assert_eq!(kind(b"x12345678"), Err(ErrorKind::InvalidData));
        assert_eq!(kind(b"q1234"), Err(ErrorKind::UnexpectedEof));
        assert_eq!(kind(b""), Ok(()));
        for start in [&[VERSION + 1, 0, 10, 0, 0, 1], &[VERSION, 2, 10, 0, 0, 1], &[VERSION, 0, 9, 0, 0, 1]] {
            let input = [&start[..], &[0; 12]].concat();
            let error = serve_between(&input[..], Vec::new(), |_| unreachable!()).expect_err("the start is wrong");
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        }
    }
}
