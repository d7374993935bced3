//! A PostgreSQL that speaks TLS: who asks for it gets it, and only from the one it believes.

#![allow(clippy::expect_used, reason = "these are tests: one fails by panicking")]

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use ostler_kernel::{Bundle, Timestamp};
use ostler_store::{Store, StoreExt};
use ostler_testing::postgres::{self, Postgres, Setup};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// An authority, and a database that it vouches for under the name `localhost`.
struct Ground {
    folder: TempDir,
    database: Postgres,
    port: u16,
}

impl Ground {
    async fn start() -> Self {
        let folder = TempDir::new().expect("a folder");
        let authority = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&authority).expect("a certificate");
        fs::write(folder.path().join("ca.pem"), root.pem()).expect("written");
        let issuer = Issuer::new(params, authority);
        let key = KeyPair::generate().expect("a key");
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
        let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
        fs::write(folder.path().join("server.pem"), leaf.pem()).expect("written");
        fs::write(folder.path().join("server.key"), key.serialize_pem()).expect("written");
        let port = ostler_testing::program::free_address().await.expect("a port").port();
        let setup = Setup { port: Some(port), ..Setup::default() };
        let database = Postgres::start_with(setup).expect("PostgreSQL");
        Self { folder, database, port }
    }

    /// Its own copies of certificate and key, as it asks for them; from then on it speaks TLS.
    fn encrypt(&self) {
        let data = self.database.folder().join("data");
        let owner = fs::metadata(&data).expect("its data");
        for name in ["server.pem", "server.key"] {
            let copy = data.join(name);
            fs::copy(self.folder.path().join(name), &copy).expect("copied");
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).expect("its permissions");
            chown(&copy, Some(owner.uid()), Some(owner.gid())).expect("its owner");
        }
        let sql = "ALTER SYSTEM SET ssl_cert_file = 'server.pem'";
        self.database.ask(sql).expect("set");
        self.database.ask("ALTER SYSTEM SET ssl_key_file = 'server.key'").expect("set");
        self.database.ask("ALTER SYSTEM SET ssl = on").expect("set");
        self.database.ask("SELECT pg_reload_conf()").expect("loaded");
    }

    fn url(&self, host: &str, query: &str) -> String {
        format!("postgres://ostler@{host}:{}/postgres?{query}", self.port)
    }

    fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// How many connections of servers are encrypted, and how many are not.
    fn connections(&self) -> String {
        let sql = "SELECT coalesce(string_agg(DISTINCT ssl::text, ' '), 'none') FROM pg_stat_ssl \
            JOIN pg_stat_activity USING (pid) WHERE application_name = 'ostler'";
        self.database.ask(sql).expect("answered")
    }
}

async fn works(url: &str) -> Result<(), String> {
    let store = postgres::open(url).await.map_err(|error| format!("{error:#}"))?;
    store.workers().await.map(drop).map_err(|error| error.to_string())
}

fn encoded(path: &Path) -> String {
    path.to_string_lossy().replace('/', "%2F")
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_and_certificates_checked() {
    let ground = Ground::start().await;
    let refused = works(&ground.url("localhost", "sslmode=require")).await.expect_err("it speaks no TLS yet");
    assert!(refused.contains("server does not support TLS"), "{refused}");
    ground.encrypt();
    let ca = encoded(&ground.ca());
    let open =
        ground.url("localhost", &format!("application_name=ostler&sslmode=verify-full&sslrootcert={ca}"));
    let store = postgres::open(&open).await.expect("the certificate is good");
    // The writers connect with their first job.
    let (_, hello) = Bundle::blob(b"hello".to_vec(), Timestamp::from_millis(0));
    drop(store.commit(vec![hello]).await.expect("committed"));
    assert_eq!(ground.connections(), "true", "every one of them is encrypted");
    drop(store);

    let fine = ["", "sslmode=prefer", "sslmode=require", &format!("sslmode=verify-ca&sslrootcert={ca}")];
    for query in fine {
        // By its number it has another name than in the certificate.
        works(&ground.url("127.0.0.1", query)).await.expect(query);
    }
    let wrong_name = works(&ground.url("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={ca}"))).await;
    let wrong_name = wrong_name.expect_err("a name that is not in the certificate");
    assert!(wrong_name.contains("not valid for name"), "{wrong_name}");
    let stranger = encoded(&ground.folder.path().join("server.pem"));
    for mode in ["require", "verify-ca", "verify-full"] {
        let query = format!("sslmode={mode}&sslrootcert={stranger}");
        let refused = works(&ground.url("localhost", &query)).await.expect_err("nobody vouches for it");
        assert!(refused.contains("invalid peer certificate"), "{mode}: {refused}");
    }
}
