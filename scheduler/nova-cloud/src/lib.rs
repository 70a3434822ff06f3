//! The cloud in memory: hosts as Nova and Placement know them, decisions on both states.
