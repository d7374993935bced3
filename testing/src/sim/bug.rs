//! Planted bugs: each breaks one thing that a promise stands on, and the simulation must notice. They are
//! put in from outside, between the shipped parts, so that the shipped parts carry none.

use std::{fmt, str::FromStr};

use ostler_kernel::{Command, Expect};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    JournalWithoutEpoch,
    FinishWithoutEpoch,
    AnswerBeforeCommit,
    InputConsumedAlone,
    TwoLiveRunsInSession,
    LeaseByCalendar,
    JudgeDoesNotWait,
    ResentAppliedTwice,
    WakeupLostNoSweep,
    CancelKeepsEpoch,
    /// Whoever lost a run gets its secrets nevertheless, and so begins the call that it asked for them for.
    SecretForAnybody,
    /// One condition of one command is not looked at.
    Unchecked(Command, Condition),
}

/// Kinds of [`Expect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    Run,
    Session,
    SessionKey,
    Inputs,
    TaskName,
    TaskKey,
    Worker,
    Counter,
    Resource,
}

impl Bug {
    /// All there are. The conditions are those that the kernel's commands really state.
    pub fn all() -> Vec<Bug> {
        use Command::{
            Accept, AcceptInput, Apply, Cancel, Delete, Expire, Finish, Journal, Register, Renew, Resolve,
            TakeOver, Wake, Yield,
        };
        use Condition::{Counter, Inputs, Resource, Run, Session, SessionKey, TaskKey, TaskName, Worker};
        let named = [
            Bug::JournalWithoutEpoch,
            Bug::FinishWithoutEpoch,
            Bug::AnswerBeforeCommit,
            Bug::InputConsumedAlone,
            Bug::TwoLiveRunsInSession,
            Bug::LeaseByCalendar,
            Bug::JudgeDoesNotWait,
            Bug::ResentAppliedTwice,
            Bug::WakeupLostNoSweep,
            Bug::CancelKeepsEpoch,
            Bug::SecretForAnybody,
        ];
        let conditions = [
            (Accept, Session),
            (Accept, SessionKey),
            (Accept, TaskName),
            (Accept, TaskKey),
            (Accept, Resource),
            (AcceptInput, Run),
            (Journal, Run),
            (Finish, Run),
            (Finish, Session),
            (Finish, SessionKey),
            (Finish, Inputs),
            (Yield, Run),
            (Yield, Inputs),
            (TakeOver, Run),
            (TakeOver, Counter),
            (Wake, Run),
            (Resolve, Run),
            (Cancel, Run),
            (Cancel, Session),
            (Expire, Run),
            (Expire, Session),
            (Register, Worker),
            (Renew, Worker),
            (Apply, Resource),
            (Apply, TaskName),
            (Delete, Resource),
        ];
        let unchecked = conditions.map(|(command, condition)| Bug::Unchecked(command, condition));
        named.into_iter().chain(unchecked).collect()
    }

    /// Whether thousands of seeds are needed to catch it: it is played by its name only. A worker that lost its run mostly
    /// hears of that from its renewals before a secret comes; one of about 1,500 seeds has it otherwise.
    pub fn is_rare(self) -> bool {
        self == Bug::SecretForAnybody
    }
}

impl Condition {
    pub fn of(expect: &Expect) -> Condition {
        match expect {
            Expect::Run { .. } | Expect::Ended { .. } => Condition::Run,
            Expect::Session { .. } => Condition::Session,
            Expect::SessionKey { .. } => Condition::SessionKey,
            Expect::Inputs { .. } => Condition::Inputs,
            Expect::TaskName { .. } => Condition::TaskName,
            Expect::TaskKey { .. } => Condition::TaskKey,
            Expect::Worker { .. } => Condition::Worker,
            Expect::Counter { .. } => Condition::Counter,
            Expect::Resource { .. } => Condition::Resource,
        }
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bug::Unchecked(command, condition) => write!(f, "unchecked:{command:?}.{condition:?}"),
            named => write!(f, "{named:?}"),
        }
    }
}

impl FromStr for Bug {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Bug::all().into_iter().find(|bug| bug.to_string() == text).ok_or_else(|| {
            let known: Vec<String> = Bug::all().iter().map(ToString::to_string).collect();
            format!("there is no bug {text:?}; the bugs are:\n  {}", known.join("\n  "))
        })
    }
}
