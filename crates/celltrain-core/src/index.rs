//! Index types for a network's parts, one for each kind of part. Code that swaps two indices, or indexes a list with
//! the wrong kind of index, does not compile.
//!
//! Lists are from `typed_index_collections`: a `TiVec<Label, T>` is a `Vec<T>` that only a [`Label`] indexes. An index
//! has only 32 bits, because frequently accessed records contain many of them. Positions within one structure, such as
//! inputs of a node, are plain integers.
//!
//! ```
//! use celltrain_core::cell::{Cell, FrameNumber};
//! use celltrain_core::index::{Label, LinkIndex, VcIndex};
//! use typed_index_collections::TiVec;
//!
//! let (vc, link, label) = (VcIndex::new(0), LinkIndex::new(1), Label::new(2));
//! let vcs: TiVec<VcIndex, &str> = vec!["tcp1", "tcp1-acks"].into();
//! let links: TiVec<LinkIndex, &str> = vec!["sw1->sw2", "sw2->sw1"].into();
//! assert_eq!((vcs[vc], links[link]), ("tcp1", "sw2->sw1"));
//! assert_eq!(Cell::new(label, FrameNumber::new(7), true).label(), label);
//! ```
//!
//! Using the index of a VC instead of a link does not compile:
//!
//! ```compile_fail
//! use celltrain_core::index::{LinkIndex, VcIndex};
//! use typed_index_collections::TiVec;
//!
//! let vc = VcIndex::new(0);
//! let links: TiVec<LinkIndex, &str> = vec!["sw1->sw2", "sw2->sw1"].into();
//! assert_eq!(links[vc], "sw1->sw2");
//! ```

/// Defines the index types. Each is a 32-bit number that indexes a `TiVec` of its own kind, and converts from and to
/// `usize` for building networks and computing results.
macro_rules! indices {
    ($($(#[$about:meta])* $name:ident;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// Creates the index with this number.
            #[inline]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// Returns the index as a plain number.
            #[inline]
            pub const fn number(self) -> u32 {
                self.0
            }

            /// Returns all indices, starting from 0. Zipping them with a list needs no length check.
            #[inline]
            pub fn counting() -> impl Iterator<Item = Self> + Clone {
                (0..).map(Self)
            }
        }

        impl From<usize> for $name {
            #[inline]
            fn from(place: usize) -> Self {
                Self(u32::try_from(place).expect("all indices fit in 32 bits"))
            }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(index: $name) -> usize {
                index.0 as usize
            }
        }
    )*};
}

pub(crate) use indices;

indices! {
    /// A VC's label on one link, dense from 0: the VPI and VCI of a real header, swapped at every switch. It fits 24
    /// bits ([`Cell::MAX_LABELS`](crate::cell::Cell::MAX_LABELS)).
    Label;

    /// Index of a link in a network, and of the output port at the link's start.
    LinkIndex;

    /// Index of a virtual channel in a network.
    VcIndex;

    /// Index of a flow in a network.
    FlowIndex;

    /// Index of a host, a switch or an edge device in a network.
    NodeIndex;

    /// Index of a group of VCs that merge in a network.
    MergeIndex;

    /// Index of a memory shared by output ports of one switch.
    MemoryIndex;
}
