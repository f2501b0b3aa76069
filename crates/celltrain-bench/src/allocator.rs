//! The allocator of the Python module and the benchmarks: a fast allocator for small blocks, and the system's for large
//! blocks.
//!
//! mimalloc copies a large block that grows. For a gigabyte this takes more than half a second, during which a run
//! cannot be interrupted. The system's allocator moves the pages instead (`docs/design/memory.md`).

use std::alloc::{GlobalAlloc, Layout, System};

/// The smallest block in bytes that glibc always maps separately, so that it can move the block's pages.
pub const LARGE: usize = 32 << 20;

/// Allocates blocks below [`LARGE`] with `A`, and larger blocks with the system's allocator.
#[derive(Debug)]
pub struct BySize<A>(pub A);

// SAFETY: the layout of a block determines its allocator, and callers of the trait pass the same layout again.
#[allow(unsafe_code, reason = "the trait declares its functions as unsafe")]
unsafe impl<A: GlobalAlloc> GlobalAlloc for BySize<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the requirements of both allocators.
        unsafe { if layout.size() < LARGE { self.0.alloc(layout) } else { System.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { if layout.size() < LARGE { self.0.alloc_zeroed(layout) } else { System.alloc_zeroed(layout) } }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`; the layout determines the block's allocator.
        unsafe { if layout.size() < LARGE { self.0.dealloc(block, layout) } else { System.dealloc(block, layout) } }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the same conditions as in `dealloc` hold. The caller promises that `size` is valid for the alignment,
        // and the new block does not overlap the old one.
        unsafe {
            match (layout.size() < LARGE, size < LARGE) {
                (true, true) => self.0.realloc(block, layout, size),
                (false, false) => System.realloc(block, layout, size),
                _ => {
                    let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !new.is_null() {
                        block.copy_to_nonoverlapping(new, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    new
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{BySize, LARGE};

    /// Counts the bytes of allocated blocks.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    #[allow(unsafe_code, reason = "the trait declares its functions as unsafe")]
    // SAFETY: every call goes to the system's allocator.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            self.0.fetch_add(layout.size(), Ordering::Relaxed);
            // SAFETY: the caller's guarantees are passed on.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            self.0.fetch_sub(layout.size(), Ordering::Relaxed);
            // SAFETY: the caller's guarantees are passed on.
            unsafe { System.dealloc(block, layout) }
        }
    }

    #[test]
    #[allow(unsafe_code, reason = "the trait declares its functions as unsafe")]
    fn a_reallocated_block_keeps_its_bytes_even_if_its_new_size_belongs_to_another_allocator() {
        let allocator = BySize(Counting::default());
        let of = |size| Layout::from_size_align(size, 8).expect("the size is valid");
        let sizes = [16, 100, LARGE - 1, LARGE, 2 * LARGE, LARGE + 1, LARGE - 1, 20, 3 * LARGE];
        // SAFETY: each block is used within its size and returned with its layout.
        unsafe {
            let mut block = allocator.alloc_zeroed(of(16));
            block.write(7);
            block.add(15).write(9);
            for (before, after) in sizes.iter().zip(&sizes[1..]) {
                block = allocator.realloc(block, of(*before), *after);
                assert_eq!((*block, *block.add(1), *block.add(15)), (7, 0, 9), "{before} to {after} bytes");
                let small = if *after < LARGE { *after } else { 0 };
                assert_eq!(allocator.0.0.load(Ordering::Relaxed), small, "{before} to {after} bytes");
            }
            allocator.dealloc(block, of(3 * LARGE));
            let zeroed = allocator.alloc_zeroed(of(LARGE));
            assert_eq!((*zeroed, *zeroed.add(LARGE - 1)), (0, 0));
            allocator.dealloc(zeroed, of(LARGE));
        }
        assert_eq!(allocator.0.0.load(Ordering::Relaxed), 0);
    }
}
