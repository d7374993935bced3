//! What a worker and a server say to each other: the worker port, its messages, and gRPC at both ends.
//!
//! Every message is plain data that can be sent: `ostler up` passes it in process, a worker elsewhere sends it over
//! gRPC, the simulation delays, drops and repeats it. A worker never opens the store; this is all it can ask for.

pub mod grpc;
pub mod message;
pub mod tokio_runtime;

#[cfg(test)]
mod compatibility;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use grpc::LARGEST_MESSAGE;
pub use message::{
    Assignment, Caller, ClaimRequest, Delta, DeltasRequest, InputsRequest, JournalRequest, LeaveRequest,
    RegisterRequest, Registered, RenewRequest, Renewed, Request, Response, SecretAnswer, SecretRequest,
    SecretValue, Signal, SignalKind, SignalsRequest,
};
pub use tokio_runtime::TokioRuntime;

/// The worker port. Implemented by `control` over the store; by whatever carries messages in between.
#[async_trait]
pub trait WorkerPort: Send + Sync + 'static {
    /// A request whose answer was lost may be sent again as it is: it counts once.
    async fn call(&self, request: Request) -> Result<Response, LinkError>;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum LinkError {
    /// The run is no longer the caller's: it was cancelled, taken over or has ended. Stop working on it.
    #[error("the run is no longer held: {found}")]
    Fenced { found: String },
    /// An input came that the leaving worker has not seen: go on with it.
    #[error("an input came in the meantime")]
    InputArrived,
    /// A newer incarnation of the same worker has registered. Stop altogether.
    #[error("another worker has registered under this name")]
    Superseded,
    /// No answer, or nobody knows whether it counted. Send it again.
    #[error("the server can't be reached: {message}")]
    Unavailable { message: String },
    /// The request makes no sense to the server; sending it again won't help.
    #[error("the server refused the request: {message}")]
    Rejected { message: String },
}

/// What the message of a rejection begins with if the server could not read the request: it is older than who asks.
const NOT_UNDERSTOOD: &str = "not understood: ";

/// What the message of a rejection begins with if it is larger than the link takes.
const TOO_LARGE: &str = "too large: ";

impl LinkError {
    pub(crate) fn too_large(bytes: usize) -> Self {
        let (has, most) = (bytes.div_ceil(1 << 20), LARGEST_MESSAGE >> 20);
        Self::Rejected { message: format!("{TOO_LARGE}{has} MiB, and a message takes {most} MiB") }
    }

    /// Whether the message can't be sent at all.
    pub fn is_too_large(&self) -> bool {
        self.is_rejected_as(TOO_LARGE)
    }

    pub(crate) fn not_understood(error: &serde_json::Error) -> Self {
        Self::Rejected { message: format!("{NOT_UNDERSTOOD}{error}") }
    }

    /// Whether the server does not know such a request at all, and therefore has nothing to say about it.
    pub fn is_not_understood(&self) -> bool {
        self.is_rejected_as(NOT_UNDERSTOOD)
    }

    fn is_rejected_as(&self, kind: &str) -> bool {
        match self {
            Self::Rejected { message } => message.starts_with(kind),
            Self::Fenced { .. } | Self::InputArrived | Self::Superseded | Self::Unavailable { .. } => false,
        }
    }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($request:ident($type:ty)) -> $response:ident($answer:ty);)*) => {
        /// The requests as functions, with the type of their answer.
        #[async_trait]
        pub trait WorkerPortExt: WorkerPort {
            $($(#[$doc])*
            async fn $name(&self, request: $type) -> Result<$answer, LinkError> {
                match self.call(Request::$request(request)).await? {
                    Response::$response(answer) => Ok(answer),
                    other => Err(LinkError::Rejected {
                        message: format!("{other:?} does not answer {}", stringify!($name)),
                    }),
                }
            })*
        }
    };
}

calls! {
    register(Register(RegisterRequest)) -> Registered(Registered);
    /// Waits for runs that are ready, for as long as the request says.
    claim(Claim(ClaimRequest)) -> Assigned(Vec<Assignment>);
    journal(Journal(JournalRequest)) -> Journaled(());
    leave(Leave(LeaveRequest)) -> Left(());
    /// Says that the worker lives, and which runs it holds; learns which of them it lost, and whether it may keep the rest.
    renew(Renew(RenewRequest)) -> Renewed(Renewed);
    /// Waits for something that concerns the caller's runs.
    signals(Signals(SignalsRequest)) -> Signals(Vec<Signal>);
    inputs(Inputs(InputsRequest)) -> Inputs(Vec<ostler_kernel::task::input::Input>);
    deltas(Deltas(DeltasRequest)) -> Shown(());
    /// A secret that the plan of a held run names.
    secret(Secret(SecretRequest)) -> Secret(SecretAnswer);
}

impl<P: WorkerPort + ?Sized> WorkerPortExt for P {}
