//! Tests five senders that share a buffer of 1000 cells with EPD. With `WINDOW=1000`, the test fails and writes a
//! capture.

use std::time::Duration;

use celltrain_hosts::{Stack, Trial};
use own_stack::Windowed;

#[test]
fn five_senders_with_the_example_protocol_stack_share_a_link() {
    let window = std::env::var("WINDOW").map_or(16, |window| window.parse().expect("WINDOW is a number of packets"));
    Trial::new(5).round_trip(Duration::from_millis(30)).check(
        "target/five-senders.pcapng",
        |ends| ends.map(|end| Box::new(Windowed::new(end, window)) as Box<dyn Stack>),
        |result| {
            assert!(result.fairness > Some(0.99), "five equal senders have equal shares: {:?}", result.fairness);
            assert_eq!(result.cells.lost + result.cells.discarded, 0, "the buffer holds five windows");
        },
    );
}
