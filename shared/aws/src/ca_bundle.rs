//! Root certificates of the operator, from a file that is read as a whole at the start. Knows no environment.

use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};

/// The root certificates to trust instead of Amazon's and the system's. There is at least one, and all can be read.
#[derive(Clone)]
pub struct CaBundle(Arc<[u8]>);

/// The reasons for which a file is not a [`CaBundle`].
#[derive(Debug, thiserror::Error)]
pub enum CaBundleError {
    /// The file cannot be read, or does not have the form PEM.
    #[error("cannot be read as PEM")]
    Unreadable(#[source] pem::Error),
    /// A part of the file is marked as a certificate, but cannot be read as a certificate.
    #[error("holds a certificate that cannot be read")]
    BadCertificate(#[source] rustls::Error),
    /// The file holds no certificate.
    #[error("holds no certificate")]
    Empty,
}

impl CaBundle {
    /// Reads a PEM file.
    pub fn read(path: &Path) -> Result<Self, CaBundleError> {
        let pem =
            std::fs::read(path).map_err(|why| CaBundleError::Unreadable(pem::Error::Io(why)))?;

        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots
                .add(certificate.map_err(CaBundleError::Unreadable)?)
                .map_err(CaBundleError::BadCertificate)?;
        }
        if roots.is_empty() { Err(CaBundleError::Empty) } else { Ok(Self(pem.into())) }
    }

    pub(crate) fn pem(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for CaBundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CaBundle({} bytes)", self.0.len())
    }
}
