//! Two tasks of one system that meet in a conversation: one hands on to the agent that the other begins with, and for
//! both it is a conversation that nobody had before.

use std::{sync::Arc, time::Duration};

use super::{Wish, apply, check_end, create, end_of, pair};
use crate::sim::{hold::Party, world::World};

const KEY: &str = "meeting";
const FIRST: u64 = 100;

pub async fn meet_in_one(world: &Arc<World>) {
    let wish =
        Wish { session: Some(KEY.to_owned()), message: "task m turns=0".to_owned(), ..Wish::quiet(FIRST) };
    apply(world, &pair(false)).await;
    let Some(first) = create(world, FIRST, &wish).await else { return };
    apply(world, &pair(true)).await;
    // While the first one is about to hand on.
    world.holds.until_held(&*world.network(), &Party::Session(KEY.to_owned()), Duration::from_secs(10)).await;
    let Some(second) = create(world, FIRST + 1, &wish).await else { return };
    for (number, task) in (FIRST..).zip([first, second]) {
        let state = end_of(world, task, &wish, &mut 0).await;
        check_end(world, number, &wish, &state);
    }
}
