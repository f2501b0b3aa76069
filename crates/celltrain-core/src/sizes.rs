//! Bytes of memory: of a record, of a list of them, of what a port keeps. What a run needs is added up of these.

/// A list, before anything is in it.
pub(crate) const LIST: u64 = 24;
/// The least an allocation takes.
pub(crate) const SMALL: u64 = 32;

/// A list of as many records as are needed.
pub(crate) fn array(records: u64, each: u64) -> u64 {
    if records == 0 || each == 0 {
        return 0;
    }
    records.saturating_mul(each).saturating_add(8).next_multiple_of(16).max(SMALL)
}

/// A list that has grown record by record, and doubled its room whenever that was full.
pub(crate) fn grown(records: u64, each: u64) -> u64 {
    if records == 0 {
        return 0;
    }
    let least = if each == 1 { 8 } else { 4 };
    array(records.min(1 << 60).next_power_of_two().max(least), each)
}

pub(crate) const fn size<T>() -> u64 {
    size_of::<T>() as u64
}

pub(crate) fn count(of: usize) -> u64 {
    of as u64
}

/// The sizes of what a port keeps, as one of the engines has it.
pub(crate) struct PortRecords {
    /// The port itself.
    pub(crate) port: u64,
    /// What it keeps of a VC, in lists of their own.
    pub(crate) of_vc: &'static [u64],
    /// Its queues where there are several, with who chooses among them; and each of these.
    pub(crate) queues: u64,
    pub(crate) queue: u64,
}

impl PortRecords {
    /// The lists of so many VCs.
    pub(crate) fn rows(&self, vcs: u64) -> u64 {
        self.of_vc.iter().map(|&each| array(vcs, each)).sum()
    }
}
