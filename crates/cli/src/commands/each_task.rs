//! The same done to several tasks: one that is refused does not stop the others.

use ostler_client::{Client, ClientError, TaskView};
use ostler_spec::Kind;

use super::{apply::is_about_the_server, missing, target};
use crate::{app::App, error::CommandError, exit::Exit};

/// Does it to each, and says of each that it was done: `task/hello cancelled`. Of one that was passed over nothing is said.
pub async fn each_task(
    app: &App,
    tasks: &[String],
    done: &str,
    act: impl AsyncFn(&Client, &str) -> Result<Option<TaskView>, ClientError>,
) -> Result<Exit, CommandError> {
    let tasks = target::tasks(tasks)?;
    let client = app.client()?;
    let mut exit = Exit::Ok;
    for task in &tasks {
        match act(&client, task).await {
            Ok(None) => {}
            Ok(Some(task)) => app.output.done(format!("task/{} {done}", task.metadata.name))?,
            Err(error) if is_about_the_server(&error) => return Err(error.into()),
            Err(error) => {
                exit = Exit::Error;
                app.output.tell(&missing::explain(&client, Kind::Task, task, error).await);
            }
        }
    }
    Ok(exit)
}
