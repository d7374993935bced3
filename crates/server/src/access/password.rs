//! Makes and compares the hashes of passwords, by argon2id. Each takes a good deal of memory and time, on purpose; so
//! they are made in threads of their own, few at a time, and few may wait for it.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use argon2::{Algorithm, Argon2, Params, Version};
use http::StatusCode;
use ostler_control::access::{PasswordBytes, PasswordHash, is_same};
use ostler_kernel::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
const LANES: u32 = 2;
const LENGTH: usize = 32;

/// At a time, and beside those waiting for their turn.
const AT_ONCE: usize = 2;
const WAITING: usize = 32;

/// Of them, those who come from an address that nobody has signed in from lately. However many they are, the others find
/// room; and each address has so many.
const STRANGERS: usize = 20;
const OF_ONE_ADDRESS: usize = 2;

/// On whose behalf a password is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// Someone who was let in, now or from the same address lately.
    Known,
    Stranger(IpAddr),
}

const LEAST_LETTERS: usize = 12;
/// It is hashed whole, so there is no reason for more.
const MOST_BYTES: usize = 1024;

pub struct Passwords {
    room: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
    addresses: Arc<Addresses>,
    turn: Arc<Semaphore>,
    /// What is compared with if there is no such user, so that it takes as long.
    nobody: PasswordHash,
}

/// Whether it may be someone's password.
pub fn check_password(password: &str) -> Result<(), String> {
    let count = password.chars().count();
    if count < LEAST_LETTERS {
        return Err(format!("expected at least {LEAST_LETTERS} letters, found {count}"));
    }
    if password.len() > MOST_BYTES {
        return Err(format!("expected at most {MOST_BYTES} bytes"));
    }
    Ok(())
}

impl Passwords {
    pub fn new(runtime: &dyn Runtime) -> Self {
        Self {
            room: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
            strangers: Arc::new(Semaphore::new(STRANGERS)),
            addresses: Arc::default(),
            turn: Arc::new(Semaphore::new(AT_ONCE)),
            nobody: unhashed(runtime),
        }
    }

    pub async fn hash(&self, password: String, runtime: &dyn Runtime) -> Result<PasswordHash, Problem> {
        let mut kept = unhashed(runtime);
        let hash = self.compute(password, kept.clone(), Asker::Known).await?;
        kept.hash = PasswordBytes(hash.ok_or_else(|| failed("it can't be hashed"))?);
        Ok(kept)
    }

    /// Whether it is the password. Takes as long if there is nothing to compare it with.
    pub async fn is_right(
        &self,
        password: String,
        kept: Option<&PasswordHash>,
        asker: Asker,
    ) -> Result<bool, Problem> {
        // A longer one is nobody's.
        if password.len() > MOST_BYTES {
            return Ok(false);
        }
        let hash = self.compute(password, kept.unwrap_or(&self.nobody).clone(), asker).await?;
        let is_same = hash.is_some_and(|hash| kept.is_some_and(|kept| is_same(&hash, &kept.hash.0)));
        Ok(is_same)
    }

    async fn compute(
        &self,
        password: String,
        like: PasswordHash,
        asker: Asker,
    ) -> Result<Option<Vec<u8>>, Problem> {
        let room = self.enter(asker).ok_or_else(busy)?;
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| failed("the server stops"))?;
        // Both are held until it is done, also if nobody waits for it any more.
        let computing = tokio::task::spawn_blocking(move || {
            let hash = compute(&password, &like);
            drop((turn, room));
            hash
        });
        computing.await.map_err(|error| failed(&error.to_string()))
    }
}

/// Held until a password was looked at.
struct Room {
    _place: OwnedSemaphorePermit,
    _stranger: Option<(OwnedSemaphorePermit, Seat)>,
}

impl Passwords {
    fn enter(&self, asker: Asker) -> Option<Room> {
        let stranger = match asker {
            Asker::Known => None,
            Asker::Stranger(address) => {
                let seat = self.addresses.sit(address)?;
                Some((Arc::clone(&self.strangers).try_acquire_owned().ok()?, seat))
            }
        };
        let place = Arc::clone(&self.room).try_acquire_owned().ok()?;
        Some(Room { _place: place, _stranger: stranger })
    }
}

/// How many of each address are being looked at. There are never more addresses than strangers.
#[derive(Default)]
struct Addresses(Mutex<BTreeMap<IpAddr, usize>>);

struct Seat {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Addresses {
    fn sit(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        let mut counts = self.lock();
        let count = counts.entry(address).or_default();
        if *count >= OF_ONE_ADDRESS {
            return None;
        }
        *count += 1;
        Some(Seat { addresses: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.addresses.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

fn compute(password: &str, like: &PasswordHash) -> Option<Vec<u8>> {
    // What is stored may ask for no more than we ever did.
    if like.memory_kib > MEMORY_KIB || like.passes > PASSES || like.lanes > LANES {
        return None;
    }
    let params = Params::new(like.memory_kib, like.passes, like.lanes, Some(LENGTH)).ok()?;
    let mut hash = vec![0; LENGTH];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password_into(password.as_bytes(), &like.salt.0, &mut hash).ok()?;
    Some(hash)
}

/// A new salt, and no hash yet.
fn unhashed(runtime: &dyn Runtime) -> PasswordHash {
    let salt = [runtime.random(), runtime.random()].iter().flat_map(|word| word.to_le_bytes()).collect();
    PasswordHash {
        memory_kib: MEMORY_KIB,
        passes: PASSES,
        lanes: LANES,
        salt: PasswordBytes(salt),
        hash: PasswordBytes(Vec::new()),
    }
}

fn busy() -> Problem {
    Problem::too_many("too many sign in at the same time", std::time::Duration::from_secs(2))
}

fn failed(reason: &str) -> Problem {
    let detail = format!("the password can't be looked at: {reason}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
        .remedy("try again")
        .after(std::time::Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use ostler_link::TokioRuntime;

    use super::*;

    fn runtime() -> TokioRuntime {
        TokioRuntime::new(tokio::runtime::Handle::current())
    }

    #[tokio::test]
    async fn a_password_is_known_by_its_hash() {
        let (runtime, words) = (runtime(), "correct horse battery");
        let passwords = Passwords::new(&runtime);
        let kept = passwords.hash(words.to_owned(), &runtime).await.unwrap();
        assert_eq!((kept.memory_kib, kept.passes, kept.lanes), (65_536, 3, 2));
        assert_eq!((kept.salt.0.len(), kept.hash.0.len()), (16, 32));
        let written = serde_json::to_string(&kept).unwrap();
        assert!(!written.contains("horse") && !format!("{kept:?}").contains("horse"));
        let kept: PasswordHash = serde_json::from_str(&written).unwrap();
        assert!(passwords.is_right(words.to_owned(), Some(&kept), Asker::Known).await.unwrap());
        assert!(
            !passwords.is_right("correct horse batterz".to_owned(), Some(&kept), Asker::Known).await.unwrap()
        );
        assert!(!passwords.is_right(words.to_owned(), None, Asker::Known).await.unwrap());
        let greedy = PasswordHash { memory_kib: 1 << 30, ..kept };
        assert!(!passwords.is_right(words.to_owned(), Some(&greedy), Asker::Known).await.unwrap());
    }

    #[tokio::test]
    async fn strangers_leave_room_for_those_who_are_known() {
        let passwords = Passwords::new(&runtime());
        let address = |last: u8| Asker::Stranger([192, 0, 2, last].into());
        let mut held: Vec<Room> = (0..OF_ONE_ADDRESS).map(|_| passwords.enter(address(1)).unwrap()).collect();
        assert!(passwords.enter(address(1)).is_none(), "one address has its share");
        held.extend((2..=200).filter_map(|last| passwords.enter(address(last))));
        assert_eq!(held.len(), STRANGERS, "and all of them together");
        assert!(passwords.addresses.lock().len() <= STRANGERS);
        let known: Vec<Room> = std::iter::from_fn(|| passwords.enter(Asker::Known)).collect();
        assert_eq!(known.len(), AT_ONCE + WAITING - STRANGERS);
        drop(held);
        assert!(passwords.addresses.lock().is_empty());
        assert!(passwords.enter(address(1)).is_some());
    }

    /// RFC 9106 has a secret and more in its vector; this one is of the reference implementation's command line.
    #[tokio::test]
    async fn it_is_argon2id() {
        let like = PasswordHash {
            memory_kib: 1 << 16,
            passes: 2,
            lanes: 1,
            salt: PasswordBytes(b"somesalt".to_vec()),
            hash: PasswordBytes(Vec::new()),
        };
        let hash: String =
            compute("password", &like).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7");
    }

    #[test]
    fn short_passwords_are_no_passwords() {
        assert!(check_password("elf letters").is_err() && check_password("twelve lette").is_ok());
        assert!(check_password("ääääääääääää").is_ok(), "letters count, not bytes");
        assert!(check_password(&"x".repeat(1025)).is_err());
    }
}
