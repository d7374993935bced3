//! What people and programs do meanwhile: create tasks, speak in shared sessions, send inputs, cancel, change
//! resources. A client that got no answer asks again, as documented; what it was told must be true at the end.

mod contend;
mod converse;

use std::{sync::Arc, time::Duration};

use ostler_control::{Control, ControlError, NewTask};
use ostler_kernel::{Task, TaskId, TaskState, runtime::timeout};
use ostler_spec::parse;
use ostler_store::StoreExt;
use tokio::sync::watch;

use super::{hold::Party, rng::Rng, world::World};

/// What a task was asked to do, and so how it may end.
#[derive(Debug, Clone)]
struct Wish {
    message: String,
    /// Done by two agents, one behind the other.
    system: bool,
    session: Option<String>,
    approval: bool,
    fails: bool,
    cancelled: bool,
    /// In milliseconds.
    deadline: Option<u64>,
    inputs: u64,
}

impl Wish {
    fn draw(rng: &mut Rng, number: u64) -> Self {
        let turns = rng.below(3);
        let (waits, approval, fails) = (rng.one_in(5), rng.one_in(2), rng.one_in(12));
        let mut message = format!("task t{number} turns={turns}");
        let mut add = |word: &str, yes: bool| {
            if yes {
                message.push_str(word);
            }
        };
        add(" once", rng.one_in(3));
        add(" sleep", rng.one_in(4));
        add(" wait", waits);
        add(" approval", waits && approval);
        add(" fails", fails);
        let session = (!rng.one_in(3)).then(|| format!("s{}", rng.below(2)));
        Self {
            message,
            system: rng.one_in(2),
            session,
            approval: waits && approval,
            fails,
            cancelled: rng.one_in(4),
            deadline: rng.one_in(4).then(|| rng.between(200, 9000)),
            inputs: if rng.one_in(4) { rng.between(1, 3) } else { 0 },
        }
    }

    fn quiet(number: u64) -> Self {
        let message = format!("task t{number} turns=1 sleep");
        Self {
            message,
            system: true,
            session: None,
            approval: false,
            fails: false,
            cancelled: false,
            deadline: None,
            inputs: 0,
        }
    }

    /// Whom the task's decisions are about: itself, or whoever is in its session.
    fn party(&self, world: &World, task: TaskId) -> Party {
        match &self.session {
            Some(key) if world.draw(|rng| rng.one_in(2)) => Party::Session(key.clone()),
            _ => Party::Task(task),
        }
    }

    fn manifest(&self, number: u64) -> String {
        let session = self.session.as_ref().map_or(String::new(), |key| format!("\n  session: {key}"));
        let deadline = self.deadline.map_or(String::new(), |millis| format!("\n  deadline: {millis}ms"));
        let doer = if self.system { "system: pair" } else { "agent: worker" };
        format!(
            "apiVersion: ostler.dev/v1\nkind: Task\nmetadata: {{name: t{number}}}\nspec:\n  {doer}\n  \
             idempotency_key: k{number}\n  retry: {{max_attempts: 4, backoff: 200ms}}{session}{deadline}\n  \
             input: {{message: \"{}\"}}\n",
            self.message
        )
    }
}

const RESOURCES: &str = r"
apiVersion: ostler.dev/v1
kind: Secret
metadata: {name: tools}
spec: {stringData: {value: simulated-secret}}
---
apiVersion: ostler.dev/v1
kind: Tool
metadata: {name: idem}
spec: {type: http, endpoint: 'http://tools.invalid/idem', auth: {secretRef: tools}}
---
apiVersion: ostler.dev/v1
kind: Tool
metadata: {name: once}
spec: {type: http, endpoint: 'http://tools.invalid/once', idempotent: false, auth: {secretRef: tools}}
---
apiVersion: ostler.dev/v1
kind: Agent
metadata: {name: worker}
spec: {model_ref: mock, tools: [idem, once], limits: {max_steps: 30}}
---
apiVersion: ostler.dev/v1
kind: Agent
metadata: {name: second}
spec: {model_ref: mock, tools: [idem, once], limits: {max_steps: 30}}
";

/// In this order or the other: whom one task's first agent hands on to may be who another one begins with.
fn pair(is_turned: bool) -> String {
    let agents = if is_turned { "second, worker" } else { "worker, second" };
    format!(
        "apiVersion: ostler.dev/v1\nkind: AgentSystem\nmetadata: {{name: pair}}\nspec: {{agents: [{agents}]}}\n"
    )
}

/// Plays the clients until each has had its answers. `done` counts those that are through.
pub async fn play(world: Arc<World>, done: watch::Sender<usize>, n_tasks: u64) {
    apply_resources(&world).await;
    for number in 0..n_tasks {
        let (world, done) = (Arc::clone(&world), done.clone());
        let network = world.network();
        network
            .spawn(
                "client",
                Box::pin(async move {
                    one_task(&world, number).await;
                    done.send_modify(|done| *done += 1);
                }),
            )
            .detach();
    }
    converse::meet_in_one(&world).await;
    contend::for_key(&world).await;
    contend::for_name(&world).await;
    contend::for_either(&world).await;
    contend::for_resource(&world).await;
    late_task(&world, n_tasks).await;
    done.send_modify(|done| *done += 1);
}

/// Comes when all is quiet: nothing that happens besides helps it along.
async fn late_task(world: &Arc<World>, number: u64) {
    while !world.is_calm() {
        pause(world, 2000).await;
    }
    let wish = Wish::quiet(number);
    let Some(task) = create(world, number, &wish).await else { return };
    let state = end_of(world, task, &wish, &mut 0).await;
    check_end(world, number, &wish, &state);
}

async fn apply_resources(world: &Arc<World>) {
    apply(world, RESOURCES).await;
    apply(world, &pair(false)).await;
}

async fn apply(world: &Arc<World>, manifests: &str) {
    for resource in parse("sim", manifests).unwrap_or_default() {
        insist(world, "apply", |control| {
            let resource = resource.clone();
            async move { control.apply(resource).await.map(drop) }
        })
        .await;
    }
}

async fn one_task(world: &Arc<World>, number: u64) {
    meet(world).await;
    let wish = world.draw(|rng| Wish::draw(rng, number));
    if wish.system {
        let is_turned = world.draw(|rng| rng.one_in(2));
        apply(world, &pair(is_turned)).await;
    }
    if let Some(key) = &wish.session {
        pounce(world, &Party::Session(key.clone())).await;
    }
    let Some(task) = create(world, number, &wish).await else { return };
    let cancelled = wish.cancelled;
    let mut sent = 0;
    for input in 0..wish.inputs {
        pounce(world, &wish.party(world, task)).await;
        sent += u64::from(send_input(world, task, &format!("input {input}")).await);
    }
    if cancelled {
        pounce(world, &wish.party(world, task)).await;
        cancel(world, task).await;
    }
    let state = end_of(world, task, &wish, &mut sent).await;
    check_end(world, number, &wish, &state);
    check_inputs(world, task, sent, &state).await;
}

/// Creates the task, asking again with the same key until there is an answer; and once more after that.
async fn create(world: &Arc<World>, number: u64, wish: &Wish) -> Option<TaskId> {
    let new = parse("sim", &wish.manifest(number)).unwrap_or_default().pop().and_then(NewTask::from_resource);
    let Some(new) = new else {
        world.violate("the simulation's own manifest is not valid".into());
        return None;
    };
    loop {
        let new = new.clone();
        match world.ask(|control| async move { control.create_task(new).await }).await {
            Some(Ok(created)) => {
                world.log(format!("accepted t{number} as {}", created.task.id));
                return Some(created.task.id);
            }
            Some(Err(ControlError::Store(_))) | None => pause(world, 400).await,
            Some(Err(error)) => {
                world.violate(format!("promise 1: t{number} was refused when it was sent again: {error}"));
                return None;
            }
        }
    }
}

/// Whether it was acknowledged. One that got no answer is not sent again: it has no key.
async fn send_input(world: &Arc<World>, task: TaskId, text: &str) -> bool {
    let text = text.to_owned();
    let answer = world.ask(move |control| async move { control.input(task, &text).await }).await;
    matches!(answer, Some(Ok(())))
}

async fn cancel(world: &Arc<World>, task: TaskId) {
    loop {
        match world.ask(move |control| async move { control.cancel(task, "simulated").await }).await {
            Some(Ok(()) | Err(ControlError::Ended { .. })) => return,
            _ => pause(world, 300).await,
        }
    }
}

/// Waits for the end, giving the task what it waits for.
async fn end_of(world: &Arc<World>, task: TaskId, wish: &Wish, sent: &mut u64) -> TaskState {
    loop {
        pause(world, 1500).await;
        let answer = world.ask(move |control| read_state(control, task)).await;
        match answer {
            Some(Ok(Some(state))) if state.is_terminal() => return state,
            Some(Ok(Some(TaskState::Waiting { .. }))) if wish.approval => {
                resolve_together(world, task).await;
            }
            Some(Ok(Some(TaskState::Waiting { .. }))) => {
                *sent += u64::from(send_input(world, task, "the answer").await);
            }
            Some(Ok(None)) => {
                world.violate(format!("promise 1: {task} was accepted and is not there"));
                return TaskState::Dropped { reason: "lost".into() };
            }
            _ => {}
        }
    }
}

/// Two people answer at once; one of them is told that it was answered.
async fn resolve_together(world: &Arc<World>, task: TaskId) {
    let answer = |text: &'static str| async move {
        pause(world, 30).await;
        world.ask(move |control| async move { control.resolve(task, text).await }).await
    };
    futures_util::future::join(answer("yes"), answer("no")).await;
}

async fn read_state(
    control: Arc<Control>,
    task: TaskId,
) -> Result<Option<TaskState>, ostler_store::StoreError> {
    let row = control.store().task(ostler_store::TaskRef::Id(task)).await?;
    Ok(row.map(|row| row.task.state))
}

fn check_end(world: &World, number: u64, wish: &Wish, state: &TaskState) {
    let fine = match state {
        TaskState::Succeeded => !wish.fails,
        TaskState::Cancelled => wish.cancelled,
        TaskState::Failed => wish.fails || wish.deadline.is_some(),
        // The model's passing failures may use up the retries; nothing else may.
        TaskState::DeadLetter => true,
        _ => false,
    };
    world.log(format!("t{number} ended as {}", state.name()));
    if !fine {
        world.violate(format!("t{number} ended as {} though it was asked for {wish:?}", state.name()));
    }
}

/// Every input that was acknowledged is in the conversation of a task that succeeded: once, and in order.
async fn check_inputs(world: &Arc<World>, task: TaskId, sent: u64, state: &TaskState) {
    if *state != TaskState::Succeeded {
        return;
    }
    let found = loop {
        let answer = world.ask(move |control| async move {
            let store = control.store();
            let row = store.task(ostler_store::TaskRef::Id(task)).await?;
            let inputs = store.inputs(task, 0).await?;
            Ok::<_, ostler_store::StoreError>((row, inputs))
        });
        match answer.await {
            Some(Ok((Some(row), inputs))) => break (row, inputs),
            _ => pause(world, 300).await,
        }
    };
    let (row, inputs) = found;
    check_agents(world, &row.task);
    let unconsumed = inputs.iter().filter(|input| input.consumed_by.is_none()).count();
    if (inputs.len() as u64) < sent || unconsumed > 0 || row.consumed_input != row.last_input {
        world.violate(format!(
            "promise 4: {task} was sent {sent} inputs, has {}, and {unconsumed} were never consumed",
            inputs.len()
        ));
    }
}

/// Each agent of a system worked once, and no agent of another.
fn check_agents(world: &World, task: &Task) {
    let expected = task.request.system.as_ref().map_or(1, |system| system.line.len());
    let found = task.runs().count();
    if found != expected {
        world.violate(format!("promise 2: {} has {expected} agents, and {found} runs", task.id));
    }
}

async fn insist<F>(world: &Arc<World>, what: &str, ask: impl Fn(Arc<Control>) -> F)
where
    F: Future<Output = Result<(), ControlError>> + Send + 'static,
{
    loop {
        match world.ask(&ask).await {
            Some(Ok(())) => return,
            Some(Err(ControlError::Store(_) | ControlError::Contended)) | None => pause(world, 200).await,
            Some(Err(error)) => return world.violate(format!("{what} was refused: {error}")),
        }
    }
}

/// Comes at one of a few moments at which others come too.
async fn meet(world: &World) {
    let moment = Duration::from_secs(1000 + 2 * world.draw(|rng| rng.between(1, 6)));
    let left = moment.saturating_sub(world.executor.now());
    world.network().sleep(left).await;
}

/// Acts when it is most in the way: right after something happened, or while a decision about the same is made.
async fn pounce(world: &World, party: &Party) {
    let network = world.network();
    if world.draw(|rng| rng.one_in(2)) {
        return world.holds.until_held(&*network, party, Duration::from_secs(4)).await;
    }
    let mut stirs = world.stirs();
    for _ in 0..world.draw(|rng| rng.between(0, 12)) {
        let limit = Duration::from_secs(2);
        drop(timeout(&*network, limit, stirs.changed()).await);
    }
    if world.draw(|rng| rng.one_in(2)) {
        pause(world, 6).await;
    }
}

async fn pause(world: &World, most: u64) {
    let pause = world.draw(|rng| rng.between(1, most));
    world.network().sleep(Duration::from_millis(pause)).await;
}
