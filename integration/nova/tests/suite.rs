//! Nova's filters and weighers: releases, plugins, the table of the page, NUMA and PCI.

mod numa_pci;
mod plugins;
mod releases;
mod table;
