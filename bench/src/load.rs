//! Many clients at once, for a while: as fast as answers come, or at a rate.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use futures_util::future::{join, try_join_all};

use crate::ground::{Agent, Ground};
use crate::machine::{Weather, WeatherWatch, settle_disk};
use crate::ostler::{Ostler, Used};
use crate::samples::Samples;

/// Before counting begins.
const SETTLE: Duration = Duration::from_secs(1);

pub struct Load {
    pub agent: Agent,
    pub at_once: usize,
    pub seconds: u64,
    /// Tasks per second that are sent; or else each client sends its next one when the last one is done.
    pub rate: Option<f64>,
}

/// What happened while it was counted.
pub struct Loaded {
    pub first_call: Samples,
    pub done: Samples,
    pub took: Duration,
    /// By the server.
    pub used: Used,
    pub weather: Weather,
}

impl Load {
    pub async fn put(&self, ground: &Ground, ostler: &Ostler) -> anyhow::Result<Loaded> {
        settle_disk();
        let mut connections = Vec::new();
        for _ in 0..self.at_once {
            connections.push(ostler.connect().await?);
        }
        let (counting, stopping) = (Cell::new(false), Cell::new(false));
        let samples = RefCell::new((Samples::default(), Samples::default()));
        let begin = Instant::now();
        let clients = connections.into_iter().enumerate().map(async |(place, mut connection)| {
            let mut times = self.times(begin, place);
            while !stopping.get() {
                if let Some(next) = times.as_mut().and_then(Iterator::next) {
                    tokio::time::sleep_until(next.into()).await;
                }
                let times = ground.run_task(&mut connection, self.agent).await?;
                if counting.get() {
                    let (first_call, done) = &mut *samples.borrow_mut();
                    first_call.push(times.first_call);
                    done.push(times.done);
                }
            }
            anyhow::Ok(())
        });
        let counted = async {
            tokio::time::sleep(SETTLE).await;
            let (before, watch, start) = (ostler.used()?, WeatherWatch::begin()?, Instant::now());
            counting.set(true);
            tokio::time::sleep(Duration::from_secs(self.seconds)).await;
            counting.set(false);
            let took = start.elapsed();
            let (used, weather) = (ostler.used()?.since(before), watch.end()?);
            stopping.set(true);
            anyhow::Ok((took, used, weather))
        };
        let (clients, counted) = join(try_join_all(clients), counted).await;
        clients?;
        let ((took, used, weather), (first_call, done)) = (counted?, samples.into_inner());
        Ok(Loaded { first_call, done, took, used, weather })
    }

    /// When the client with this place sends, if there is a rate: evenly, each at its own moments.
    fn times(&self, begin: Instant, place: usize) -> Option<impl Iterator<Item = Instant> + use<>> {
        Some(moments(begin, place, self.at_once, self.rate?))
    }
}

/// When the client with this place among so many sends, at a rate of all of them.
pub fn moments(
    begin: Instant,
    place: usize,
    at_once: usize,
    rate: f64,
) -> impl Iterator<Item = Instant> + use<> {
    let between = Duration::from_secs_f64(at_once as f64 / rate);
    let first = begin + between.mul_f64(place as f64 / at_once as f64);
    (0..).map(move |number: u32| first + between * number)
}

impl Loaded {
    /// How much of the time under load was counted.
    pub fn share(&self) -> f64 {
        self.took.as_secs_f64() / (self.took + SETTLE).as_secs_f64()
    }

    pub fn per_second(&self) -> f64 {
        self.done.len() as f64 / self.took.as_secs_f64()
    }
}
