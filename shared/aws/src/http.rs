//! The HTTP client and the root certificates that it trusts. Sends no request of its own.

use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::shared::IntoShared as _;
use rustls::CertificateError;

use crate::CaBundle;

/// The five roots of Amazon Trust Services. Parsing the system's roots, about 140, would take most of a
/// cold start.
const AMAZON_ROOTS: &[u8] = include_bytes!("../roots/amazon.pem");

/// The client for `endpoint`, or for AWS's own endpoints if it is `None`.
///
/// With a `bundle`, the client trusts only the certificates in the bundle. Without a bundle, it trusts Amazon's roots.
/// After a server has presented a certificate of another authority, the client trusts the system's roots: the endpoint
/// may be private, or a proxy may terminate TLS.
pub(crate) fn client(endpoint: Option<&str>, bundle: Option<&CaBundle>) -> SharedHttpClient {
    if endpoint.is_some_and(|url| url.starts_with("http:")) {
        return Builder::new().build_http();
    }
    match bundle {
        Some(bundle) => https(TrustStore::empty().with_pem_certificate(bundle.pem())),
        None => AmazonFirst::or(TrustStore::default()).into_shared(),
    }
}

fn https(roots: TrustStore) -> SharedHttpClient {
    let context = TlsContext::builder().with_trust_store(roots).build();
    Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .tls_context(context.expect("a TLS context needs only a trust store"))
        .build_https()
}

/// A client that trusts Amazon's roots. After the first server with another issuer, it trusts the other roots.
#[derive(Debug)]
struct AmazonFirst {
    amazon: SharedHttpClient,
    others: Arc<Others>,
}

/// The client with the other roots. It is built when it is first needed, because parsing the roots takes
/// milliseconds.
#[derive(Debug)]
struct Others {
    roots: TrustStore,
    client: OnceLock<SharedHttpClient>,
}

impl AmazonFirst {
    fn or(roots: TrustStore) -> Self {
        let amazon = https(TrustStore::empty().with_pem_certificate(AMAZON_ROOTS));
        Self { amazon, others: Arc::new(Others { roots, client: OnceLock::new() }) }
    }
}

impl HttpClient for AmazonFirst {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        if let Some(client) = self.others.client.get() {
            return client.http_connector(settings, components);
        }
        let amazon = self.amazon.http_connector(settings, components);
        Attempt { amazon, others: Arc::clone(&self.others) }.into_shared()
    }
}

/// A connector with Amazon's roots. If the issuer of a server is unknown, it builds the client with the other roots for
/// the SDK's next attempt. The SDK retries failed connections, and asks for a connector at each attempt.
#[derive(Debug)]
struct Attempt {
    amazon: SharedHttpConnector,
    others: Arc<Others>,
}

impl HttpConnector for Attempt {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let answer = self.amazon.call(request);
        let others = Arc::clone(&self.others);
        HttpConnectorFuture::new(async move {
            answer.await.inspect_err(|error| {
                if is_unknown_issuer(error) {
                    others.client.get_or_init(|| https(others.roots.clone()));
                }
            })
        })
    }
}

/// Whether the server's certificate was refused because its issuer is not among the trusted roots.
fn is_unknown_issuer(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(rustls::Error::InvalidCertificate(why)) = error.downcast_ref() {
            return *why == CertificateError::UnknownIssuer;
        }
        // `source` of an `io::Error` skips the error inside it and returns the source of the inner error.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(carried) => Some(carried),
            None => error.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use aws_smithy_async::time::SystemTimeSource;
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
    use aws_smithy_types::body::SdkBody;
    use rcgen::{
        BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    };
    use rustls::RootCertStore;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use sha2::{Digest as _, Sha256};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// Starts a server. Returns its URL and the root of the authority that issued its certificate.
    async fn server(name: &str) -> (String, String) {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, name);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().unwrap();
        let root = authority.self_signed(&authority_key).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut own = CertificateParams::new(["localhost".to_owned()]).unwrap();
        own.distinguished_name = DistinguishedName::new();
        let own = own.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![own.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                // A client that does not trust the certificate ends the handshake.
                let Ok(mut connection) = acceptor.accept(connection).await else { continue };
                let mut request = [0; 4096];
                let _ = connection.read(&mut request).await.unwrap();
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                connection.write_all(answer).await.unwrap();
                connection.shutdown().await.ok();
            }
        });
        (url, root.pem())
    }

    /// Sends one request and returns the status of the response.
    async fn ask(client: &impl HttpClient, url: &str) -> Result<u16, ConnectorError> {
        let components = RuntimeComponentsBuilder::for_tests()
            .with_time_source(Some(SystemTimeSource::new()))
            .build()
            .unwrap();
        let connector =
            client.http_connector(&HttpConnectorSettings::builder().build(), &components);
        let mut request = HttpRequest::new(SdkBody::empty());
        request.set_uri(url).unwrap();
        connector.call(request).await.map(|answer| answer.status().as_u16())
    }

    fn only(pem: &str) -> TrustStore {
        TrustStore::empty().with_pem_certificate(pem)
    }

    #[tokio::test]
    async fn a_server_of_another_authority_is_trusted_at_the_second_attempt() {
        let (url, root) = server("an authority").await;
        let client = AmazonFirst::or(only(&root));
        let refused = ask(&client, &url).await.expect_err("not issued by Amazon");
        assert!(refused.is_io(), "the SDK tries again: {refused:?}");
        for _ in 0..2 {
            assert_eq!(ask(&client, &url).await.expect("trusted"), 200);
        }
    }

    #[tokio::test]
    async fn a_server_of_an_unknown_authority_is_refused_and_the_error_says_why() {
        let (url, _) = server("another authority").await;
        let (_, root) = server("an authority").await;
        let client = AmazonFirst::or(only(&root));
        for _ in 0..3 {
            let refused = ask(&client, &url).await.expect_err("issued by neither");
            assert!(is_unknown_issuer(&refused), "{refused:?}");
            assert!(format!("{refused:?}").contains("UnknownIssuer"), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn a_client_with_a_bundle_trusts_no_other_roots() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (url, root) = server("an authority").await;
        std::fs::write(file.path(), &root).unwrap();
        let bundle = CaBundle::read(file.path()).expect("a bundle");
        let trusting = client(Some(&url), Some(&bundle));
        assert_eq!(ask(&trusting, &url).await.expect("trusted"), 200);
        let (url, _) = server("another authority").await;
        let refused = ask(&trusting, &url).await.expect_err("another authority");
        assert!(is_unknown_issuer(&refused), "{refused:?}");
    }

    #[test]
    fn a_file_without_valid_certificates_is_no_bundle() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for text in ["", "no PEM", broken] {
            std::fs::write(file.path(), text).unwrap();
            assert!(CaBundle::read(file.path()).is_err(), "{text:?}");
        }
        assert!(CaBundle::read(&file.path().join("absent")).is_err());
    }

    /// The file names each certificate by its SHA-256 digest.
    #[test]
    fn the_roots_match_the_digests_in_the_file() {
        let text = std::str::from_utf8(AMAZON_ROOTS).expect("text");
        let is_digest = |word: &&str| word.len() == 64;
        let named: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_digest).collect();
        let mut roots = RootCertStore::empty();
        let mut found = Vec::new();
        for root in CertificateDer::pem_slice_iter(AMAZON_ROOTS) {
            let root = root.expect("PEM");
            let digest = Sha256::digest(&root);
            let mut hex = String::new();
            digest.iter().for_each(|byte| write!(hex, "{byte:02x}").unwrap());
            found.push(hex);
            roots.add(root).expect("a certificate");
        }
        assert_eq!((found.len(), roots.len()), (5, 5));
        assert_eq!(found, named);
    }
}
