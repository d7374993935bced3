//! Where it happens, and who bears witness there.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use ostler_kernel::EventBody;
use ostler_store::{
    SqliteStore, Store, StoreExt,
    planted::{Bug, Planted},
    sqlite::Options,
};
use tempfile::TempDir;

use crate::postgres::{Place, Visitor};

#[async_trait]
pub trait Ground: Send + Sync {
    fn n_servers(&self) -> usize;

    /// How often a worker may have to wait in a life, at most.
    fn longest_life(&self) -> u64;

    async fn open(&self) -> Arc<dyn Store>;

    /// Cuts what connects the servers with their database, and tells how many connections there were.
    async fn cut_connections(&self) -> usize;

    /// The most leases that any commit left.
    async fn most_leases(&self, store: &dyn Store) -> usize;
}

/// One server, since exactly one process opens the file.
pub struct SqliteGround {
    options: Options,
    _folder: TempDir,
}

impl SqliteGround {
    pub fn new(bug: Option<Bug>) -> Self {
        let folder = TempDir::new().expect("a folder");
        let planted = bug.map_or(Planted::default(), Planted::with);
        let path = folder.path().join("store.db");
        let options = Options { planted, reserve_log: false, ..Options::at(&path) };
        Self { options, _folder: folder }
    }
}

#[async_trait]
impl Ground for SqliteGround {
    fn n_servers(&self) -> usize {
        1
    }

    fn longest_life(&self) -> u64 {
        10
    }

    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open_with(self.options.clone()).expect("a store"))
    }

    async fn cut_connections(&self) -> usize {
        0
    }

    /// Events stand in the order of commits, so that the log tells it for each of them.
    async fn most_leases(&self, store: &dyn Store) -> usize {
        let (mut leased, mut most) = (BTreeSet::new(), 0);
        for event in store.log(0, usize::MAX).await.expect("the store answers") {
            match event.body {
                EventBody::AttemptStarted { .. } => {
                    assert!(leased.insert(event.task), "it is leased already")
                }
                EventBody::AttemptEnded { .. } | EventBody::TaskEnded { .. } => {
                    leased.remove(&event.task);
                }
                _ => {}
            }
            most = most.max(leased.len());
        }
        most
    }
}

/// Two servers on one database.
pub struct PostgresGround {
    place: Place,
    visitor: Visitor,
}

/// Looks at the end of each transaction that changed a run, when all before it are committed and none comes between.
const WITNESS: &str = "CREATE TABLE witness (leases bigint NOT NULL);
    GRANT INSERT ON witness TO PUBLIC;
    CREATE FUNCTION testify() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended(current_schema(), 8));
        INSERT INTO witness SELECT count(*) FROM runs WHERE worker IS NOT NULL;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER testify AFTER UPDATE ON runs DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION testify()";

impl PostgresGround {
    pub async fn new(bug: Option<Bug>) -> Self {
        let place = Place::fresh().expect("PostgreSQL");
        Self::at(match bug {
            Some(bug) => place.planted(bug),
            None => place,
        })
        .await
    }

    pub async fn at(place: Place) -> Self {
        drop(place.open().await.expect("a store in PostgreSQL"));
        let visitor = place.visitor().await.expect("PostgreSQL");
        visitor.execute(WITNESS).await.expect("a witness");
        Self { place, visitor }
    }
}

#[async_trait]
impl Ground for PostgresGround {
    fn n_servers(&self) -> usize {
        2
    }

    fn longest_life(&self) -> u64 {
        40
    }

    async fn open(&self) -> Arc<dyn Store> {
        loop {
            // Connections are cut while they are opened, too.
            if let Ok(store) = self.place.open().await {
                return Arc::new(store);
            }
        }
    }

    async fn cut_connections(&self) -> usize {
        usize::try_from(self.visitor.end_connections().await.expect("PostgreSQL")).unwrap_or(0)
    }

    async fn most_leases(&self, _: &dyn Store) -> usize {
        let most = self.visitor.number("SELECT coalesce(max(leases), 0) FROM witness").await;
        usize::try_from(most.expect("PostgreSQL")).expect("a count")
    }
}
