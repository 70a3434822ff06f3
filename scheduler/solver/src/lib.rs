//! Exact minimum-cost victim selection in any number of resource classes
