//! The authority of a region and the certificates that it signs.

use super::files::Directory;
use ebbtide_shell::errors::CliError;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::time::Duration;

/// The authority's own certificate is valid for so long.
const AUTHORITY_DAYS: u64 = 3650;
/// Clocks of other machines may be late.
const EARLIER: Duration = Duration::from_secs(3600);

/// Who signs the region's certificates: `ca.pem` and `ca.key` of the directory.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, which everybody who connects has to know.
    pub(super) pem: String,
}

impl Authority {
    /// The one that is there, or a new one.
    ///
    /// # Errors
    /// [`crate::error::ManageError::Init`] for files that cannot be written or are not the
    /// authority's.
    pub(super) fn take(directory: &mut Directory) -> Result<Self, CliError> {
        let found = (directory.read("ca.pem")?, directory.read("ca.key")?);
        if let (Some(pem), Some(key)) = found {
            let wrong = |error: rcgen::Error| directory.wrong("ca.pem", &error.to_string());
            let key = KeyPair::from_pem(&key).map_err(wrong)?;
            let issuer = Issuer::from_ca_cert_pem(&pem, key).map_err(wrong)?;
            return Ok(Self { issuer, pem });
        }
        let wrong = |error: rcgen::Error| directory.wrong("ca.pem", &error.to_string());
        let mut params = CertificateParams::new(Vec::new()).map_err(wrong)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "Ebbtide region");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        valid_for(&mut params, AUTHORITY_DAYS);
        let key = KeyPair::generate().map_err(wrong)?;
        let pem = params.self_signed(&key).map_err(wrong)?.pem();
        directory.replace(
            "ca.key",
            "the authority's key: keep it apart",
            &key.serialize_pem(),
        )?;
        directory.replace("ca.pem", "the authority's certificate", &pem)?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
        })
    }

    /// Makes `NAME.crt` and `NAME.key` of a server with these names and addresses, unless both are
    /// there.
    ///
    /// # Errors
    /// [`crate::error::ManageError::Init`] for a name that a certificate cannot hold, and files
    /// that cannot be written.
    pub(super) fn server(
        &self,
        directory: &mut Directory,
        name: &str,
        of: &[String],
        days: u32,
    ) -> Result<(), CliError> {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        if directory.has(&certificate) && directory.has(&key) {
            directory.kept(&certificate);
            directory.kept(&key);
            return Ok(());
        }
        let wrong = |error: rcgen::Error| directory.wrong(&certificate, &error.to_string());
        let mut params = CertificateParams::new(of.to_vec()).map_err(wrong)?;
        let common = of.first().map_or("server", String::as_str);
        params.distinguished_name.push(DnType::CommonName, common);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        valid_for(&mut params, days.into());
        let pair = KeyPair::generate().map_err(wrong)?;
        let signed = params.signed_by(&pair, &self.issuer).map_err(wrong)?;
        let what = format!("certificate for {}, {days} days", of.join(", "));
        directory.replace(&key, "its key", &pair.serialize_pem())?;
        directory.replace(&certificate, &what, &signed.pem())
    }
}

fn valid_for(params: &mut CertificateParams, days: u64) {
    let now = ebbtide_runtime::clock::utc();
    params.not_before = now - EARLIER;
    params.not_after = now + Duration::from_secs(days * 86_400);
}
