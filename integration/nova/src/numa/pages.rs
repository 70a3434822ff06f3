//! Page sizes (`NUMACell.can_fit_pagesize`, `_numa_cell_supports_pagesize_request`,
//! `_numa_pagesize_usage_from_cell`).

use crate::fault::NovaException;
use crate::model::{InstanceNumaCell, NumaCell, PagesTopology};

/// The class that [`super::fit`] catches: the cell has no pages of that size.
pub(super) const NOT_SUPPORTED: &str = "MemoryPageSizeNotSupported";

/// `hw:mem_page_size=small`: the smallest size of the cell.
pub(crate) const SMALL_PAGES: i64 = -1;
/// `large`: any size but the smallest.
pub(crate) const LARGE_PAGES: i64 = -2;
/// `any`: any size, the largest first.
pub(crate) const ANY_PAGES: i64 = -3;

const KIB_PER_MIB: i64 = 1024;

// Nova's amounts are unbounded Python integers. An amount that is too large saturates here.

impl NumaCell {
    /// Whether memory (KiB) goes into pages of a size: enough of them, and no page half used.
    /// Counts free pages, or all pages where over-commitment is fine.
    ///
    /// # Errors
    /// `MemoryPageSizeNotSupported` without pages of that size; `ZeroDivisionError` for pages of no
    /// size.
    pub(super) fn can_fit_pagesize(
        &self,
        pagesize: i64,
        memory_kb: i64,
        use_free: bool,
    ) -> Result<bool, NovaException> {
        let Some(pages) = self.mempages.iter().find(|pages| pages.size_kb == pagesize) else {
            return Err(NovaException::new(
                NOT_SUPPORTED,
                format!("no pages of {pagesize} KiB"),
            ));
        };
        let count = if use_free {
            pages
                .total
                .saturating_sub(pages.used)
                .saturating_sub(pages.reserved)
        } else {
            pages.total
        };
        if memory_kb > count.saturating_mul(pages.size_kb) {
            return Ok(false);
        }
        match memory_kb.checked_rem(pages.size_kb) {
            Some(rest) => Ok(rest == 0),
            None => Err(NovaException::new(
                "ZeroDivisionError",
                "a page size of 0 KiB",
            )),
        }
    }

    /// The size of page that the cell gives a guest cell that asks for one, or `None` if it cannot.
    ///
    /// # Errors
    /// As [`Self::can_fit_pagesize`]; a missing size is an error only if it was asked for by
    /// number.
    pub(super) fn pagesize_for(
        &self,
        wanted: i64,
        guest: &InstanceNumaCell,
    ) -> Result<Option<i64>, NovaException> {
        let mut sizes: Vec<i64> = self.mempages.iter().map(|pages| pages.size_kb).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let last = sizes.len().saturating_sub(1);
        let explicit = [wanted];
        let tried: &[i64] = match wanted {
            SMALL_PAGES => &sizes[last..],
            LARGE_PAGES => &sizes[..last],
            ANY_PAGES => &sizes,
            _ => &explicit,
        };
        for &size in tried {
            if self.can_fit_pagesize(size, guest.memory.saturating_mul(KIB_PER_MIB), true)? {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    /// The smallest page size of the cell, if it reports pages.
    pub(super) fn smallest_pagesize(&self) -> Option<i64> {
        self.mempages.iter().map(|pages| pages.size_kb).min()
    }

    /// The cell's pages once a guest cell uses some (`sign` 1) or has given them back (-1).
    ///
    /// # Errors
    /// `IndexError` if neither the guest nor the host names a page size, `ZeroDivisionError` for
    /// pages of no size. Nova only logs these, see [`super::consume`].
    pub(super) fn pages_with(
        &self,
        guest: &InstanceNumaCell,
        sign: i64,
    ) -> Result<Vec<PagesTopology>, NovaException> {
        let size = match guest.pagesize {
            Some(size) if size != 0 => size,
            _ => self.smallest_pagesize().ok_or_else(|| {
                NovaException::new("IndexError", "the host cell reports no pages")
            })?,
        };
        self.mempages
            .iter()
            .map(|pages| {
                if pages.size_kb != size {
                    return Ok(pages.clone());
                }
                if pages.size_kb == 0 {
                    return Err(NovaException::new(
                        "ZeroDivisionError",
                        "a page size of 0 KiB",
                    ));
                }
                // Nova divides as floating point and cuts off what is left when it stores the
                // number.
                let added = guest.memory.saturating_mul(KIB_PER_MIB) as f64 / pages.size_kb as f64;
                let used = (pages.used as f64 + added * sign as f64).max(0.0) as i64;
                Ok(PagesTopology {
                    used,
                    ..pages.clone()
                })
            })
            .collect()
    }
}
