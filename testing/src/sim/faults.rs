//! What goes wrong by itself: processes die, stand still, lose their network, are started twice, and calendars
//! jump. After a while all of it stops.

use std::{sync::Arc, time::Duration};

use super::world::{LEASE, World};

pub async fn play(world: Arc<World>, trouble: Duration, n_workers: u64) {
    let clock = world.network();
    let end = world.executor.now() + trouble;
    while world.executor.now() < end {
        let pause = world.draw(|rng| rng.between(100, 2500));
        clock.sleep(Duration::from_millis(pause)).await;
        one(&world).await;
    }
    heal(&world, n_workers);
}

async fn one(world: &Arc<World>) {
    let workers = world.workers();
    let (fault, chosen) = world.draw(|rng| (rng.below(13), rng.next()));
    let Some((node, name)) = workers.get(chosen as usize % workers.len().max(1)).cloned() else { return };
    let span = Duration::from_millis(world.draw(|rng| rng.between(50, 3 * LEASE.as_millis() as u64)));
    match fault {
        0 | 1 => {
            world.log("fault: the server is killed");
            world.crash_server();
        }
        2 | 3 => {
            world.log(format!("fault: worker {name} is killed"));
            world.kill_worker(node);
            later(world, span, move |world| {
                world.boot_worker(&name);
            });
        }
        4 => {
            world.log(format!("fault: worker {name} stands still for {span:?}"));
            world.stand_still(node, span);
        }
        5 => {
            world.log(format!("fault: worker {name} is cut off for {span:?}"));
            world.cut(node, true);
            later(world, span, move |world| world.cut(node, false));
        }
        6 => {
            world.log(format!("fault: worker {name} stands still, and another takes its name"));
            world.boot_worker(&name);
            world.stand_still(node, LEASE + span);
        }
        7 => {
            world.log(format!("fault: worker {name} is asked to stop"));
            world.stop_worker(node);
        }
        8 => {
            world.log(format!("fault: worker {name} is started twice, and one of them is killed"));
            let former = workers.iter().filter(|(_, other)| *other == name);
            former.for_each(|(node, _)| world.kill_worker(*node));
            let first = world.boot_twin(&name);
            world.boot_twin(&name);
            later(world, span / 200, move |world| world.kill_worker(first));
        }
        9 | 10 => {
            world.log(format!("fault: the messages of worker {name} take long for {span:?}"));
            world.slow_down(node, true);
            later(world, span, move |world| world.slow_down(node, false));
            if fault == 10 {
                // What it has sent is still under way when it can send no more.
                later(world, LEASE, move |world| world.stand_still(node, LEASE + span));
            }
        }
        _ => {
            let offset = world.draw(|rng| rng.between(0, 1_200_000)) as i64 - 600_000;
            let node = if fault == 11 { world.server_node() } else { node };
            world.log(format!("fault: the calendar of {node:?} is off by {offset} ms"));
            world.executor.set_calendar(node, offset);
        }
    }
}

fn later(world: &Arc<World>, delay: Duration, then: impl FnOnce(&Arc<World>) + Send + 'static) {
    let (world, clock) = (Arc::clone(world), world.network());
    let network = world.network();
    let wait = async move {
        clock.sleep(delay).await;
        then(&world);
    };
    network.spawn("later", Box::pin(wait)).detach();
}

/// Everything runs again, the calendars are right, and every name has a worker.
fn heal(world: &Arc<World>, n_workers: u64) {
    world.calm_down();
    world.executor.set_calendar(world.server_node(), 0);
    for (node, _) in world.workers() {
        world.kill_worker(node);
    }
    for worker in 0..n_workers {
        world.boot_worker(&format!("w{worker}"));
    }
}
