//! What else has to be in a file of TOML for the example and the ends of the range of a key.

/// For the key with this path.
pub fn of(path: &str) -> String {
    let table = |name: &str| path.starts_with(name);
    let text = match path {
        "plugins[].file" => "[[plugins]]\nname = \"spread_racks\"\n",
        "plugins[].address" => "[[plugins]]\nname = \"forecast\"\n",
        "plugins[].plugin"
        | "plugins[].deadline_ms"
        | "plugins[].in_flight"
        | "plugins[].ca_file"
        | "plugins[].certificate_file"
        | "plugins[].key_file" => SERVICE,
        _ if table("plugins") => PLUGIN,
        "grpc.listen" | "http.listen" => {
            let section = path.strip_suffix(".listen").unwrap();
            return server(section, "");
        }
        _ if table("grpc.tls") => return server("grpc", path),
        _ if table("http.tls") => return server("http", path),
        "database.keep_days" | "database.keep_minutes" => {
            "[region]\nlongest_budget_window_seconds = 30\n"
        }
        _ if table("auth.certificates") => CERTIFICATE_ROW,
        "auth.open_metrics" => "[auth]\ntokens = \"/etc/ebbtide/tokens\"\n",
        _ if table("quotas.projects") => {
            "[[quotas.projects]]\nname = \"science\"\nservers = 5000\n"
        }
        "region.comeback.first_seconds" => "[region.comeback]\nmax_seconds = 604800\n",
        "region.comeback.max_seconds" => "[region.comeback]\nfirst_seconds = 1\n",
        "region.market.floor_percent" => "[region.market]\nceiling_percent = 1000\n",
        "region.market.ceiling_percent" => "[region.market]\nfloor_percent = 0\n",
        _ if table("engine.weighers") => "[[engine.weighers]]\nname = \"ram\"\n",
        _ if table("shadow.weighers") => "[[shadow.weighers]]\nname = \"ram\"\n",
        "evacuation.backoff_first_ms" => "[evacuation]\nbackoff_cap_ms = 600000\n",
        "evacuation.backoff_cap_ms" => "[evacuation]\nbackoff_first_ms = 1\n",
        "fence.options" => "[fence]\ncommand = [\"/bin/true\"]\n",
        _ if table("driver.libvirt.storage") => {
            "[driver.libvirt.storage]\nname = \"nfs-1\"\ndir = \"/mnt/nfs-1\"\n"
        }
        _ if table("driver.simulated.storage") => {
            "[driver.simulated.storage]\nname = \"nfs-1\"\ndir = \"/mnt/nfs-1\"\n"
        }
        _ if table("driver.libvirt.peers") => {
            "[[driver.libvirt.peers]]\nuri = \"qemu+ssh://compute-2/system\"\n"
        }
        _ => "",
    };
    let pair = match path {
        "plugins[].certificate_file" => "key_file = \"/etc/ebbtide/client.key\"\n",
        "plugins[].key_file" => "certificate_file = \"/etc/ebbtide/client.pem\"\n",
        _ => "",
    };
    format!("{text}{pair}")
}

const SERVICE: &str =
    "[[plugins]]\nname = \"forecast\"\naddress = \"https://forecast.example:7480\"\n";
const PLUGIN: &str =
    "[[plugins]]\nname = \"spread_racks\"\nfile = \"/etc/ebbtide/plugins/spread_racks.wasm\"\n";
const CERTIFICATE_ROW: &str = "[[auth.certificates]]\nname = \"dns:ci.example.org\"\n\
    role = \"tenant\"\nprojects = [\"ci\"]\n";

/// A listener with certificates, which has to authenticate its callers.
fn server(section: &str, path: &str) -> String {
    let ca = if path.contains(".client_crl") || path.contains(".client_certificates") {
        "client_ca = \"ca.pem\"\n"
    } else {
        ""
    };
    format!(
        "[{section}.tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n{ca}[auth]\ntokens = \"t\"\n"
    )
}
