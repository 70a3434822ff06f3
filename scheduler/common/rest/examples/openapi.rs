//! Prints the OpenAPI document, as `docs/reference/openapi.json` has it.
//!
//! ```sh
//! cargo run -p ebbtide-rest --example openapi >docs/reference/openapi.json
//! ```

use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let document = ebbtide_rest::openapi::document()?;
    let text = serde_json::to_string_pretty(&document)?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}
