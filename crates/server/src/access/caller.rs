//! A caller: who it is, and what it may.

use std::{net::IpAddr, sync::Arc};

use axum::extract::FromRequestParts;
use http::{Extensions, StatusCode, request::Parts};
use ostler_control::access::{Grant, Holder, Proof, Role};
use ostler_kernel::Timestamp;
use ostler_spec::Resource;

use super::references;
use crate::{problem::Problem, routes::Need};

#[derive(Debug, Clone)]
pub struct Caller {
    holder: Arc<Holder>,
    /// What was shown; nothing for the server's own token, which can't be taken away while it runs.
    proof: Option<Proof>,
}

/// Who a request comes from, or why that is not known. Every request that reaches a route has one.
#[derive(Debug, Clone)]
pub struct Identity(pub Result<Caller, Problem>);

/// The address at the other end of the connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

impl Caller {
    /// The bearer of the server's own token.
    pub fn server() -> Self {
        Self { holder: Arc::new(Holder::lasting("server", Grant::whole())), proof: None }
    }

    pub fn holding(holder: Arc<Holder>, proof: Proof) -> Self {
        Self { holder, proof: Some(proof) }
    }

    pub fn name(&self) -> &str {
        &self.holder.name
    }

    pub fn grant(&self) -> &Grant {
        &self.holder.grant
    }

    /// When what it showed will not count any more.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.holder.expires_at
    }

    pub fn proof(&self) -> Option<Proof> {
        self.proof
    }

    /// Whether it may do what a route needs.
    pub fn check(&self, need: Need) -> Result<(), Problem> {
        let (role, is_everywhere) = match need {
            Need::Nothing | Need::SignIn => return Ok(()),
            Need::Read => (Role::Reader, false),
            Need::Oversee => (Role::Reader, true),
            Need::Write => (Role::Writer, false),
            Need::Report => (Role::Controller, false),
            Need::Manage => (Role::Admin, false),
            Need::Administer => (Role::Admin, true),
        };
        let grant = self.grant();
        if grant.role < role {
            let detail =
                format!("this takes the role {role}, and {:?} has the role {}", self.name(), grant.role);
            return Err(forbidden(detail).remedy(format!("use a token or a user of the role {role}")));
        }
        if is_everywhere && !grant.namespaces.are_all() {
            let detail = format!(
                "this concerns all namespaces, and {:?} is let into {} alone",
                self.name(),
                grant.namespaces
            );
            return Err(forbidden(detail).remedy("use a token or a user that holds for all namespaces"));
        }
        Ok(())
    }

    /// Whether it is let into a namespace.
    pub fn check_namespace(&self, namespace: &str) -> Result<(), Problem> {
        if self.grant().namespaces.has(namespace) {
            return Ok(());
        }
        Err(self.foreign(&format!("namespace {namespace:?}")))
    }

    /// Whether it may look at all namespaces at once.
    pub fn check_all_namespaces(&self) -> Result<(), Problem> {
        if self.grant().namespaces.are_all() { Ok(()) } else { Err(self.foreign("all namespaces at once")) }
    }

    /// Whether it may put this in place: where it lives, and what it names.
    pub fn check_resource(&self, resource: &Resource) -> Result<(), Problem> {
        self.check_namespace(&resource.metadata.namespace)?;
        if self.grant().namespaces.are_all() {
            return Ok(());
        }
        for namespace in references::namespaces(resource) {
            if !self.grant().namespaces.has(&namespace) {
                return Err(self.foreign(&format!("namespace {namespace:?}, which the resource names")));
            }
        }
        Ok(())
    }

    fn foreign(&self, what: &str) -> Problem {
        let own = &self.grant().namespaces;
        forbidden(format!("{:?} is not let into {what}", self.name()))
            .remedy(format!("it is let into {own}: name one with `namespace=`"))
    }
}

fn forbidden(detail: String) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "forbidden", detail)
}

impl Identity {
    /// Fails closed: a request that nobody has looked at comes from nobody.
    pub fn of(extensions: &Extensions) -> Result<Caller, Problem> {
        match extensions.get::<Self>() {
            Some(Self(identity)) => identity.clone(),
            None => Err(Problem::unauthorized("nobody knows who asks")),
        }
    }

    /// The one place where a route's need is held against who asks.
    pub fn check(extensions: &Extensions, need: Need) -> Result<(), Problem> {
        if need == Need::Nothing { Ok(()) } else { Self::of(extensions)?.check(need) }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Identity::of(&parts.extensions)
    }
}

impl<S: Sync> FromRequestParts<S> for Identity {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(Self::of(&parts.extensions)))
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let peer = parts.extensions.get::<Self>().copied();
        peer.ok_or_else(|| Problem::unauthorized("nobody knows where the request comes from"))
    }
}

#[cfg(test)]
mod tests {
    use ostler_control::access::Namespaces;

    use super::*;

    fn caller(role: Role, namespaces: &[&str]) -> Caller {
        let names: Vec<String> = namespaces.iter().map(|&name| name.to_owned()).collect();
        let grant = Grant { role, namespaces: Namespaces::from(names) };
        Caller { holder: Arc::new(Holder::lasting("x", grant)), proof: None }
    }

    #[test]
    fn each_role_may_do_what_those_before_it_may() {
        let needs = [Need::SignIn, Need::Read, Need::Write, Need::Report, Need::Manage, Need::Administer];
        let may = |caller: Caller| needs.iter().filter(|need| caller.check(**need).is_ok()).count();
        assert_eq!(Role::ALL.map(|role| may(caller(role, &["*"]))), [2, 3, 4, 6]);
        assert_eq!(Role::ALL.map(|role| may(caller(role, &["a"]))), [2, 3, 4, 5]);
        assert!(caller(Role::Reader, &["*"]).check(Need::Oversee).is_ok());
        assert!(caller(Role::Admin, &["a"]).check(Need::Oversee).is_err());
    }

    #[test]
    fn what_a_resource_names_elsewhere_counts_too() {
        let resource = |model: &str| {
            ostler_spec::from_json(&serde_json::json!({
                "kind": "Agent", "metadata": {"name": "x", "namespace": "a"}, "spec": {"model_ref": model, "prompt": "p"},
            }))
            .unwrap()
        };
        let limited = caller(Role::Writer, &["a", "b"]);
        for model in ["m", "a/m", "b/m"] {
            assert!(limited.check_resource(&resource(model)).is_ok(), "{model}");
        }
        let refused = limited.check_resource(&resource("c/m")).unwrap_err();
        assert!(refused.detail().contains("\"c\""), "{refused:?}");
        assert!(caller(Role::Writer, &["b"]).check_resource(&resource("m")).is_err(), "it lives in a");
        assert!(caller(Role::Writer, &["*"]).check_resource(&resource("c/m")).is_ok());
    }

    #[test]
    fn who_was_not_looked_at_is_nobody() {
        let nothing = Extensions::new();
        assert!(Identity::check(&nothing, Need::Nothing).is_ok());
        assert!(Identity::check(&nothing, Need::SignIn).is_err());
    }
}
