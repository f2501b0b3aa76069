//! What becomes of a run that panics. The module needs an interpreter to be loaded, this part of it does not.

#[path = "../src/panics.rs"]
mod panics;

use panics::{caught, quiet_while_caught};

#[test]
fn a_panic_is_an_error_with_its_words_and_place_and_the_thread_goes_on() {
    quiet_while_caught();
    quiet_while_caught();
    let seed = 4;
    let told: Result<(), String> = caught(|| panic!("seed {seed} fails"));
    let told = told.unwrap_err();
    assert!(told.starts_with("seed 4 fails ("), "{told}");
    assert!(told.contains("panics.rs:"), "{told}");
    assert!(caught(|| std::panic::panic_any(3)).map(|(): ()| ()).unwrap_err().starts_with("without a word ("));
    assert_eq!(caught(|| 5), Ok(5));
}

#[test]
fn a_panic_outside_is_told_as_before() {
    quiet_while_caught();
    assert_eq!(caught(|| ()), Ok(()));
    let thread = std::thread::spawn(|| assert_eq!(caught(|| 1), Ok(2), "outside of what is caught"));
    assert!(thread.join().is_err());
}
