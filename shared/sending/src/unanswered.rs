//! The reasons for which a request has no answer, in texts that show nothing of the request.

use std::io;
use std::time::Duration;

use outgoing::{AnswerVerdict, ForbiddenAddress, Request};
use rustls::CertificateError;

/// The longest time of a request, from resolving the name to the end of the answer.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// A request without an answer. The text names the setting that has the address, and shows no secret: the client's own
/// errors can contain the address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} of {maker}: {cause}")]
pub struct Unanswered {
    maker: &'static str,
    field: &'static str,
    /// The cause.
    pub cause: Cause,
    /// Whether the server may have received the whole request. If so, a repeated request is marked as a repeat.
    pub may_have_arrived: bool,
}

/// The reasons for which there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The name of the host has no address.
    #[error("the name of its host leads nowhere")]
    UnknownHost,
    /// The client may not connect to any address of the host.
    #[error("its host has the address {0}")]
    Forbidden(ForbiddenAddress),
    /// The address does not use TLS.
    #[error("must begin with https://; a deployed server sends nothing without TLS")]
    NotHttps,
    /// The connection was refused.
    #[error("nothing listens at its port")]
    Refused,
    /// The host cannot be reached.
    #[error("its host cannot be reached from here")]
    Unreachable,
    /// TLS failed.
    #[error("{0}")]
    Tls(TlsFault),
    /// The time is over.
    #[error("has not answered within {} seconds", TIMEOUT.as_secs())]
    TimedOut,
    /// The server does not speak HTTP.
    #[error("does not answer in HTTP")]
    NotHttp,
    /// The answer is too long.
    #[error("answers more than 512 KiB")]
    TooLarge,
    /// The connection ended before the answer.
    #[error("closed the connection before it had answered")]
    Closed,
}

/// The reasons for which TLS failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TlsFault {
    /// No public authority issued the certificate.
    #[error("has a certificate that no public authority issued")]
    UnknownIssuer,
    /// The certificate has expired, or is not valid yet.
    #[error("has a certificate that is not valid now")]
    Expired,
    /// The certificate belongs to another host.
    #[error("has a certificate of another host")]
    OtherHost,
    /// The certificate is wrong for another reason.
    #[error("has a certificate that is not valid")]
    BadCertificate,
    /// The server does not speak TLS, or no version that the client speaks.
    #[error("does not speak TLS 1.2 or 1.3")]
    NoTls,
}

impl Unanswered {
    pub(crate) fn new(request: &Request, error: &ureq::Error, may_have_arrived: bool) -> Self {
        let (maker, field) = (request.maker(), request.field());
        Self { maker, field, cause: Cause::of(error), may_have_arrived }
    }

    pub(crate) const fn too_large(request: &Request) -> Self {
        let (maker, field) = (request.maker(), request.field());
        Self { maker, field, cause: Cause::TooLarge, may_have_arrived: true }
    }

    /// The verdict on the attempt. Usually a retry may help. But a person has to mend a forbidden address, an address
    /// without TLS, and a certificate.
    pub const fn verdict(&self) -> AnswerVerdict {
        match self.cause {
            Cause::Forbidden(_) | Cause::NotHttps | Cause::Tls(_) => {
                AnswerVerdict::Failing { retry_after: None }
            }
            _ => AnswerVerdict::UNANSWERED,
        }
    }
}

impl Cause {
    fn of(error: &ureq::Error) -> Self {
        match error {
            ureq::Error::HostNotFound => Self::UnknownHost,
            ureq::Error::Timeout(_) => Self::TimedOut,
            ureq::Error::RequireHttpsOnly(_) => Self::NotHttps,
            ureq::Error::Io(error) => Self::of_io(error),
            ureq::Error::Rustls(error) => Self::Tls(TlsFault::of(error)),
            ureq::Error::Tls(_) | ureq::Error::TlsRequired => Self::Tls(TlsFault::NoTls),
            ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => Self::NotHttp,
            ureq::Error::Other(error) => match error.downcast_ref() {
                Some(forbidden) => Self::Forbidden(*forbidden),
                None => Self::Closed,
            },
            _ => Self::Closed,
        }
    }

    fn of_io(error: &io::Error) -> Self {
        if let Some(error) = error.get_ref().and_then(|source| source.downcast_ref()) {
            return Self::Tls(TlsFault::of(error));
        }
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable => Self::Unreachable,
            _ => Self::Closed,
        }
    }
}

impl TlsFault {
    fn of(error: &rustls::Error) -> Self {
        let rustls::Error::InvalidCertificate(error) = error else { return Self::NoTls };
        match error {
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Expired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::OtherHost
            }
            _ => Self::BadCertificate,
        }
    }
}
