//! Encrypted connections to the database. What an address asks for is written as PostgreSQL's own programs take it
//! (`sslmode`, `sslrootcert`, `sslcert`, `sslkey`) and means the same.

mod trust;

use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use percent_encoding::percent_decode_str;
use rustls::{
    ClientConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    config::SslMode,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};

use self::trust::Trust;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("sslmode can be disable, prefer, require, verify-ca or verify-full, and not {0:?}")]
    Mode(String),
    #[error("sslcert and sslkey go together")]
    HalfAnIdentity,
    #[error("can't read {path:?} as PEM")]
    File {
        path: PathBuf,
        #[source]
        error: rustls::pki_types::pem::Error,
    },
    #[error("{path:?} holds no certificate")]
    Empty { path: PathBuf },
    #[error("TLS can't be set up")]
    Rustls(#[from] rustls::Error),
}

/// What an address says about TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    mode: Mode,
    /// A file of certificates to believe, or `system`.
    root: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    Disable,
    /// If the database can, whoever it is.
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Wanted {
    /// Takes it out of an address, and leaves the rest of that.
    pub fn take(url: &str) -> Result<(String, Self), TlsError> {
        let mut wanted = Self::default();
        let Some((place, query)) = url.split_once('?') else { return Ok((url.to_owned(), wanted)) };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslmode" => wanted.mode = Mode::named(&value)?,
                "sslrootcert" => wanted.root = Some(value.into()),
                "sslcert" => wanted.certificate = Some(value.into()),
                "sslkey" => wanted.key = Some(value.into()),
                _ => rest.push(pair),
            }
        }
        let rest = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        Ok((rest, wanted))
    }

    pub fn mode(&self) -> SslMode {
        match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }

    pub fn connector(&self) -> Result<Connector, TlsError> {
        let root = self.root.as_deref().filter(|root| *root != Path::new("system"));
        let trust = match (self.mode, root) {
            (Mode::Disable | Mode::Prefer, _) | (Mode::Require, None) => Trust::anyone(),
            // As PostgreSQL's own programs do: who names an authority wants it to be asked.
            (Mode::Require, Some(_)) | (Mode::VerifyCa, _) => Trust::of(root)?.whatever_its_name(),
            (Mode::VerifyFull, _) => Trust::of(root)?,
        };
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(trust));
        let config = match (&self.certificate, &self.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let failed = |error| TlsError::File { path: key.clone(), error };
                let key = PrivateKeyDer::from_pem_file(key).map_err(failed)?;
                builder.with_client_auth_cert(certificates(certificate)?, key)?
            }
            (Some(_), None) | (None, Some(_)) => return Err(TlsError::HalfAnIdentity),
        };
        Ok(Connector(Arc::new(config)))
    }
}

impl Mode {
    fn named(name: &str) -> Result<Self, TlsError> {
        Ok(match name {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            other => return Err(TlsError::Mode(other.to_owned())),
        })
    }
}

/// The certificates of a file, in its order.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |error| TlsError::File { path: path.to_owned(), error };
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(failed)?.collect();
    let certificates = read.map_err(failed)?;
    if certificates.is_empty() {
        return Err(TlsError::Empty { path: path.to_owned() });
    }
    Ok(certificates)
}

/// Makes connections encrypted.
#[derive(Clone)]
pub struct Connector(Arc<ClientConfig>);

pub struct Handshake {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S> MakeTlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, name: &str) -> Result<Handshake, Self::Error> {
        // Sockets are asked too, and have no name that one could show a certificate for: they are not encrypted.
        let name = if name.is_empty() { "localhost" } else { name };
        Ok(Handshake { config: Arc::clone(&self.0), name: ServerName::try_from(name)?.to_owned() })
    }
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let connecting = tokio_rustls::TlsConnector::from(self.config).connect(self.name, stream);
        Box::pin(async move { connecting.await.map(Encrypted) })
    }
}

pub struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(url: &str) -> Mode {
        Wanted::take(url).expect("an address").1.mode
    }

    #[test]
    fn is_taken_out_of_an_address() {
        let url = "postgres://me@db/ostler?application_name=x&sslmode=verify-full&sslrootcert=%2Fa%20b.pem&options=-c%20y";
        let (rest, wanted) = Wanted::take(url).expect("an address");
        assert_eq!(rest, "postgres://me@db/ostler?application_name=x&options=-c%20y");
        let root = Some(PathBuf::from("/a b.pem"));
        assert_eq!(wanted, Wanted { mode: Mode::VerifyFull, root, certificate: None, key: None });
        assert_eq!(Wanted::take("postgres://db/x?sslmode=disable").expect("an address").0, "postgres://db/x");
    }

    #[test]
    fn encrypts_where_it_can_unless_told_otherwise() {
        assert_eq!(mode_of("postgres://db/x"), Mode::Prefer);
        assert_eq!(mode_of("postgres://db/x?sslmode=require"), Mode::Require);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |url: &str| match Wanted::take(url) {
            Err(error) => error.to_string(),
            Ok((_, wanted)) => wanted.connector().err().map(|error| error.to_string()).expect("refused"),
        };
        let modes = "sslmode can be disable, prefer, require, verify-ca or verify-full, and not \"on\"";
        assert_eq!(refused("postgres://db/x?sslmode=on"), modes);
        assert_eq!(refused("postgres://db/x?sslcert=a.pem"), "sslcert and sslkey go together");
        let missing = refused("postgres://db/x?sslmode=verify-ca&sslrootcert=/nowhere.pem");
        assert_eq!(missing, "can't read \"/nowhere.pem\" as PEM");
    }
}
