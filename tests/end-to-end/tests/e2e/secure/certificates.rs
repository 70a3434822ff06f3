//! Certificates for tests, made on the spot.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use std::path::{Path, PathBuf};

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key, as files.
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Writes the root and answers where.
    pub(crate) fn write(&self, dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(format!("{name}.pem"));
        std::fs::write(&path, &self.pem).unwrap();
        path
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for 127.0.0.1 and localhost.
    pub(crate) fn server(&self, dir: &Path, name: &str) -> Pair {
        let mut params =
            CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params, dir, name)
    }

    /// A client's certificate with these names (`dns:…`, `uri:…`).
    pub(crate) fn client(&self, dir: &Path, name: &str, names: &[&str]) -> Pair {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        for name in names {
            let (kind, name) = name.split_once(':').unwrap();
            let name = name.try_into().unwrap();
            params.subject_alt_names.push(match kind {
                "dns" => SanType::DnsName(name),
                _ => SanType::URI(name),
            });
        }
        self.sign(params, dir, name)
    }

    fn sign(&self, params: CertificateParams, dir: &Path, name: &str) -> Pair {
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let pair = Pair {
            certificate: dir.join(format!("{name}.crt")),
            key: dir.join(format!("{name}.key")),
            certificate_pem: signed.pem(),
            key_pem: key.serialize_pem(),
        };
        std::fs::write(&pair.certificate, &pair.certificate_pem).unwrap();
        std::fs::write(&pair.key, &pair.key_pem).unwrap();
        pair
    }
}
