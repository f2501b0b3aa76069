//! Runs the example stack as a program. The argument is the window in packets. `program.py` starts the program once for
//! each end of a flow.

use celltrain_hosts::serve;
use own_stack::Windowed;

fn main() -> std::io::Result<()> {
    let window = std::env::args().nth(1).map_or(16, |window| window.parse().expect("the window is a number of packets"));
    serve(|end| Box::new(Windowed::new(end, window)))
}
