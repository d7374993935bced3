//! Planted bugs: each breaks one thing that a promise stands on, and the simulation must notice. They are
//! put in from outside, between the shipped parts, so that the shipped parts carry none.

use std::{fmt, str::FromStr};

use ostler_kernel::{Bundle, Command, Expect};

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
    /// One condition of one command is not looked at.
    Unchecked(Command, Condition),
}

/// Kinds of [`Expect`]; a run that is not the bundle's own is a condition of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    Run,
    NextRun,
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
    /// The bugs that a few hundred seeds catch; with [`Bug::rare`] they are all there are. The conditions are
    /// those that the kernel's commands really state.
    pub fn all() -> Vec<Bug> {
        use Command::{
            Accept, AcceptInput, Apply, Cancel, Finish, Journal, Register, Renew, TakeOver, Wake, Yield,
        };
        use Condition::{Inputs, Resource, Run, Session, SessionKey, TaskKey, TaskName, Worker};
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
        ];
        let conditions = [
            (Accept, Session),
            (Accept, SessionKey),
            (Accept, TaskName),
            (Accept, TaskKey),
            (AcceptInput, Run),
            (Journal, Run),
            (Finish, Run),
            (Finish, Session),
            (Finish, Inputs),
            (Yield, Run),
            (Yield, Inputs),
            (TakeOver, Run),
            (Wake, Run),
            (Cancel, Run),
            (Cancel, Session),
            (Register, Worker),
            (Renew, Worker),
            (Apply, Resource),
        ];
        let unchecked = conditions.map(|(command, condition)| Bug::Unchecked(command, condition));
        named.into_iter().chain(unchecked).collect()
    }

    /// Conditions whose absence 500 seeds did not show: two rare things have to meet for them to matter. A gap
    /// in the simulation, not proof that they hold.
    pub fn rare() -> Vec<Bug> {
        use Command::{Cancel, Expire, Finish, Resolve, TakeOver};
        use Condition::{Counter, NextRun, Run, Session};
        let conditions = [
            (Finish, NextRun),
            (TakeOver, Counter),
            (Resolve, Run),
            (Cancel, NextRun),
            (Expire, Run),
            (Expire, NextRun),
            (Expire, Session),
        ];
        conditions.map(|(command, condition)| Bug::Unchecked(command, condition)).to_vec()
    }
}

impl Condition {
    /// Which condition of its bundle this is.
    pub fn of(bundle: &Bundle, expect: &Expect) -> Condition {
        match expect {
            Expect::Run { .. } => {
                let first = bundle.expect.iter().find(|other| matches!(other, Expect::Run { .. }));
                if first == Some(expect) { Condition::Run } else { Condition::NextRun }
            }
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
        Bug::all().into_iter().chain(Bug::rare()).find(|bug| bug.to_string() == text).ok_or_else(|| {
            let known: Vec<String> = Bug::all().iter().chain(&Bug::rare()).map(ToString::to_string).collect();
            format!("there is no bug {text:?}; the bugs are:\n  {}", known.join("\n  "))
        })
    }
}
