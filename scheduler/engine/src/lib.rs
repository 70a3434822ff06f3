//! The pure decision engine: host table, filters, ranking, victims, explanation
