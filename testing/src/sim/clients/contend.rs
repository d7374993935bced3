//! Clients who want the same thing at the same time: one resource, one name, one key.

use std::sync::Arc;

use ostler_control::{ControlError, NewTask, Precondition};
use ostler_kernel::TaskId;
use ostler_spec::{Kind, parse};

use super::{insist, meet, pause};
use crate::sim::world::World;

/// Two clients change one resource at the same time: each change that was acknowledged has its own version.
pub async fn for_resource(world: &Arc<World>) {
    let mut acknowledged = 0_u64;
    for round in 0..6_u64 {
        let change = |who: u64| {
            let text = format!(
                "kind: Tool\nmetadata: {{name: shared}}\nspec: {{type: http, endpoint: 'http://tools.invalid/{round}/{who}'}}"
            );
            let resource = parse("sim", &text).unwrap_or_default().pop();
            world.ask(move |control| async move {
                match resource {
                    Some(resource) => control.apply(resource).await,
                    None => Err(ControlError::Contended),
                }
            })
        };
        let (first, second) = futures_util::future::join(change(0), change(1)).await;
        acknowledged += [first, second].iter().filter(|answer| matches!(answer, Some(Ok(_)))).count() as u64;
        pause(world, 800).await;
    }
    let found = loop {
        match world
            .ask(|control| async move { control.resource(Kind::Tool, "default", "shared").await })
            .await
        {
            Some(Ok(found)) => break found,
            _ => pause(world, 300).await,
        }
    };
    let version: u64 =
        found.and_then(|resource| resource.metadata.resource_version?.parse().ok()).unwrap_or(0);
    if version < acknowledged {
        world.violate(format!("{acknowledged} changes were acknowledged, and the resource is at {version}"));
    }
    for round in 0..4_u64 {
        change_while_deleted(world, round).await;
    }
    delete_resource(world).await;
}

/// One deletes the version it has seen while another changes it: whoever comes second is told, or makes it anew. A change
/// that was acknowledged is not deleted by one who never saw it.
async fn change_while_deleted(world: &Arc<World>, round: u64) {
    let seen =
        world.ask(|control| async move { control.resource(Kind::Tool, "default", "shared").await }).await;
    let Some(Ok(Some(seen))) = seen else { return pause(world, 300).await };
    let meant = Precondition::Version(seen.metadata.resource_version.unwrap_or_default());
    let text = format!(
        "kind: Tool\nmetadata: {{name: shared}}\nspec: {{type: http, endpoint: 'http://tools.invalid/late/{round}'}}"
    );
    let resource = parse("sim", &text).unwrap_or_default().pop();
    let change = world.ask(move |control| async move {
        match resource {
            Some(resource) => control.apply(resource).await,
            None => Err(ControlError::Contended),
        }
    });
    let delete = world
        .ask(move |control| async move { control.delete_if(Kind::Tool, "default", "shared", &meant).await });
    let (changed, deleted) = futures_util::future::join(change, delete).await;
    if !matches!((changed, deleted), (Some(Ok(_)), Some(Ok(())))) {
        return pause(world, 300).await;
    }
    loop {
        match world
            .ask(|control| async move { control.resource(Kind::Tool, "default", "shared").await })
            .await
        {
            Some(Ok(None)) => {
                return world
                    .violate("a change was acknowledged, and deleted by one who never saw it".to_owned());
            }
            Some(Ok(Some(_))) => return,
            _ => pause(world, 300).await,
        }
    }
}

async fn delete_resource(world: &Arc<World>) {
    insist(world, "delete", |control| async move {
        match control.delete(Kind::Tool, "default", "shared").await {
            // Deleted by a request whose answer was lost, or never there.
            Err(ControlError::NotFound { .. }) => Ok(()),
            answer => answer,
        }
    })
    .await;
}

/// The same request twice at once, without a name and with one key: both are answered with the one task.
pub async fn for_key(world: &Arc<World>) {
    meet(world).await;
    let (first, second) = futures_util::future::join(create_keyed(world), create_keyed(world)).await;
    if let (Some(first), Some(second)) = (first, second)
        && first != second
    {
        world.violate(format!("one request became two tasks, {first} and {second}"));
    }
}

/// Its task. One that got no answer asks again with the same key.
async fn create_keyed(world: &Arc<World>) -> Option<TaskId> {
    let text = "kind: Task\nmetadata: {name: unnamed}\nspec:\n  agent: worker\n  idempotency_key: shared\n  \
                input: {message: task c turns=0}";
    let mut new = parse("sim", text).unwrap_or_default().pop().and_then(NewTask::from_resource)?;
    new.name = None;
    loop {
        let new = new.clone();
        match world.ask(|control| async move { control.create_task(new).await }).await {
            Some(Ok(created)) => return Some(created.task.id),
            Some(Err(ControlError::Store(_))) | None => pause(world, 400).await,
            Some(Err(error)) => {
                world.violate(format!("a key that is used for the same request was answered with: {error}"));
                return None;
            }
        }
    }
}

/// Two requests for a task of one name at once: one of them is refused, and says so.
pub async fn for_name(world: &Arc<World>) {
    meet(world).await;
    let (first, second) = futures_util::future::join(
        create_contended(world, "contended", "one"),
        create_contended(world, "contended", "other"),
    )
    .await;
    if first && second {
        world.violate("two tasks were accepted under one name".into());
    }
}

/// A task and a template of one name at once: one of them is refused, and says so.
pub async fn for_either(world: &Arc<World>) {
    meet(world).await;
    let (task, template) =
        futures_util::future::join(create_contended(world, "either", "one"), keep_contended(world, "either"))
            .await;
    if task && template {
        world.violate("a task and a template have one name".into());
    }
}

/// Whether it was told that its template is kept. One that got no answer asks again.
async fn keep_contended(world: &Arc<World>, name: &str) -> bool {
    let text = format!("kind: Task\nmetadata: {{name: {name}}}\nspec: {{agent: worker, mode: template}}");
    loop {
        let template = parse("sim", &text).unwrap_or_default().pop();
        let keep = world.ask(move |control| async move {
            match template {
                Some(template) => control.apply(template).await,
                None => Err(ControlError::Contended),
            }
        });
        match keep.await {
            Some(Ok(_)) => return true,
            Some(Err(ControlError::NameTaken { .. })) => return false,
            Some(Err(ControlError::Store(_) | ControlError::Contended)) | None => pause(world, 400).await,
            Some(Err(error)) => {
                world.violate(format!("a template whose name is taken was answered with: {error}"));
                return false;
            }
        }
    }
}

/// Whether it was told that its task was accepted. One that got no answer asks again; `what` tells it from another request.
async fn create_contended(world: &Arc<World>, name: &str, what: &str) -> bool {
    let text = format!(
        "kind: Task\nmetadata: {{name: {name}}}\nspec: {{agent: worker, input: {{message: task c turns=0 {what}}}}}"
    );
    loop {
        let new = parse("sim", &text).unwrap_or_default().pop().and_then(NewTask::from_resource);
        let create = world.ask(move |control| async move {
            match new {
                Some(new) => control.create_task(new).await,
                None => Err(ControlError::Contended),
            }
        });
        match create.await {
            Some(Ok(_)) => return true,
            // A task's, or a template's.
            Some(Err(ControlError::NameTaken { .. } | ControlError::Conflict(_))) => return false,
            Some(Err(ControlError::Store(_))) | None => pause(world, 400).await,
            Some(Err(error)) => {
                world.violate(format!("a name that is taken was answered with: {error}"));
                return false;
            }
        }
    }
}
