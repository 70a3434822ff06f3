//! NUMA and PCI logic by example and by property. That it is Nova's is for the corpora to say; this
//! says what it does.

mod build;
mod numa;
mod odd_guests;
mod pci;
