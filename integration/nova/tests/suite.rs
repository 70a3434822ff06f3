//! Nova's filters and weighers: releases, plugins, the table of the page, NUMA and PCI.

mod boot_needs;
mod numa_pci;
mod plugins;
mod releases;
mod table;
