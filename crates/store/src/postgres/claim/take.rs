//! Takes runs for a claim, out of all lanes in which something is ready. Chooses first, and locks only what is chosen: others
//! claim at the same time, and of many lanes what could be chosen is many times what is.

use std::collections::BTreeMap;

use ostler_kernel::{
    RunId,
    queue::{Candidate, Lane, Rooms},
};

use super::{Lanes, Locked, Ready};
use crate::{
    Claim,
    postgres::{
        Failed,
        connection::Connection,
        row::{Id, id, most},
    },
    turns::SharedTurns,
};

/// The first runs of each lane, as many as are wanted of it and no later than that. Nothing is locked yet: that would keep
/// it from others, and of many lanes it is many times what one claim takes.
pub const READY: &str = "SELECT wanted.lane, first.id, first.rank \
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS wanted (lane, most, latest) \
    CROSS JOIN LATERAL (SELECT id, rank FROM runs WHERE runs.lane = wanted.lane AND rank <= wanted.latest \
        AND id <> ALL($4) ORDER BY rank, id LIMIT wanted.most) AS first";

/// What a claim could lay its hands on.
#[derive(Default)]
pub struct Taken {
    /// All that was tried, in the order of turns.
    pub chosen: Vec<RunId>,
    /// What of it is ours until the transaction ends. None if nothing is.
    pub locked: Option<Locked>,
}

/// Chooses, and locks only what is chosen. What others were quicker at is made up for from the rest.
pub async fn take(
    connection: &Connection,
    request: &Claim,
    turns: &SharedTurns,
    lanes: &Lanes,
    mut rooms: Rooms,
) -> Result<Taken, Failed> {
    let mut taken = Taken::default();
    let (mut left, mut is_first) = (request.slots, true);
    while left > 0 {
        let wanted = Wanted::of(left, lanes, &rooms, is_first);
        let candidates = wanted.candidates(connection, &taken.chosen).await?;
        let chosen = turns.choose(candidates.clone(), left, rooms.clone(), &request.shares);
        let is_short = chosen.len() < left;
        let locked = match (chosen.is_empty(), taken.locked.is_none()) {
            (true, _) => Locked::default(),
            (false, true) => Locked::chosen(connection, &chosen).await?,
            (false, false) => Locked::if_ready(connection, &chosen).await?,
        };
        for candidate in candidates.iter().filter(|candidate| locked.rows.contains_key(&candidate.run)) {
            enter(&mut rooms, candidate);
        }
        // Others were quicker, here or at the first ones of the lanes.
        let is_more = locked.rows.len() < chosen.len() || (is_short && wanted.is_bounded());
        left -= locked.rows.len();
        taken.add(chosen, locked);
        is_first = false;
        if !is_more {
            break;
        }
    }
    Ok(taken)
}

impl Taken {
    fn add(&mut self, chosen: Vec<RunId>, locked: Locked) {
        self.chosen.extend(chosen);
        if !locked.rows.is_empty() {
            self.locked = Some(match self.locked.take() {
                Some(before) => before.with(locked),
                None => locked,
            });
        }
    }
}

/// How much is wanted of which lanes, and up to which rank.
#[derive(Default)]
struct Wanted<'a> {
    lanes: Vec<(i64, &'a Lane)>,
    most: Vec<i64>,
    latest: Vec<i64>,
}

impl<'a> Wanted<'a> {
    fn of(slots: usize, lanes: &'a Lanes, rooms: &Rooms, is_first: bool) -> Self {
        let bounds = if is_first { bounds(slots, lanes, rooms) } else { BTreeMap::new() };
        let mut wanted = Self::default();
        for (place, Ready { lane, .. }) in lanes {
            let room = slots.min(rooms.of(&lane.namespace, &lane.class));
            if room > 0 {
                wanted.lanes.push((*place, lane));
                wanted.most.push(most(room));
                wanted.latest.push(bounds.get(lane.namespace.as_str()).copied().unwrap_or(i64::MAX));
            }
        }
        wanted
    }

    fn is_bounded(&self) -> bool {
        self.latest.iter().any(|latest| *latest < i64::MAX)
    }

    /// But for what was tried before.
    async fn candidates(&self, connection: &Connection, tried: &[RunId]) -> Result<Vec<Candidate>, Failed> {
        let places: Vec<i64> = self.lanes.iter().map(|(place, _)| *place).collect();
        let tried: Vec<Id> = tried.iter().map(Id::from).collect();
        let rows = connection.all(READY, &[&places, &self.most, &self.latest, &tried]).await?;
        let lanes: BTreeMap<i64, &Lane> = self.lanes.iter().copied().collect();
        let mut candidates = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(lane) = lanes.get(&row.try_get(0)?) else { continue };
            let (namespace, class) = (lane.namespace.clone(), lane.class.clone());
            candidates.push(Candidate { run: id(row, 1)?, namespace, class, rank: row.try_get(2)? });
        }
        Ok(candidates)
    }
}

/// The latest rank that can count in a namespace that has as many lanes as there are slots: the first of each of them goes
/// before it. Those with too little room don't count: what is first there may have to stay.
fn bounds<'a>(slots: usize, lanes: &'a Lanes, rooms: &Rooms) -> BTreeMap<&'a str, i64> {
    let mut heads: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for Ready { lane, head } in lanes.values() {
        if rooms.of(&lane.namespace, &lane.class) >= slots {
            heads.entry(&lane.namespace).or_default().push(*head);
        }
    }
    let bound = |(namespace, mut heads): (&'a str, Vec<i64>)| {
        heads.sort_unstable();
        Some((namespace, *heads.get(slots.checked_sub(1)?)?))
    };
    heads.into_iter().filter_map(bound).collect()
}

/// What is taken makes no room for more.
fn enter(rooms: &mut Rooms, Candidate { namespace, class, .. }: &Candidate) {
    let class = rooms.classes.get_mut(&(namespace.clone(), class.clone()));
    for room in class.into_iter().chain(rooms.namespaces.get_mut(namespace)) {
        *room = room.saturating_sub(1);
    }
}
