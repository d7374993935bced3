//! Divides what is too much for one look of the server: each part with all that it refers to, so that a look at the part finds
//! what a look at the whole would.

use std::collections::{BTreeMap, BTreeSet};

use ostler_spec::{Kind, Resource, Spec};

/// Numbers of resources.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What is looked at.
    pub subjects: Vec<usize>,
    /// What they refer to, if it is not among them.
    pub beside: BTreeSet<usize>,
}

/// What one look may hold.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub objects: usize,
    pub bytes: usize,
}

/// Half of what a server takes at once.
pub const BOUNDS: Bounds = Bounds { objects: 2500, bytes: 2 << 20 };

impl Part {
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.subjects.iter().chain(&self.beside).copied()
    }
}

/// Every resource is the subject of one part. One that refers to more than a look may hold has a part of its own.
pub fn divide(resources: &[Resource], bounds: Bounds) -> Vec<Part> {
    let whole = Whole::of(resources);
    let mut parts = Vec::new();
    let mut part = Growing::default();
    for number in 0..resources.len() {
        let needed = whole.needed(number);
        if !part.has_room(&needed, &whole, bounds) {
            parts.push(std::mem::take(&mut part).finish());
        }
        part.add(number, needed, &whole);
    }
    parts.push(part.finish());
    parts.retain(|part| !part.subjects.is_empty());
    parts
}

/// A part that is not full yet.
#[derive(Default)]
struct Growing {
    subjects: Vec<usize>,
    held: BTreeSet<usize>,
    bytes: usize,
}

impl Growing {
    fn has_room(&self, needed: &BTreeSet<usize>, whole: &Whole<'_>, bounds: Bounds) -> bool {
        let new = || needed.difference(&self.held);
        let bytes: usize = new().map(|number| whole.sizes[*number]).sum();
        let is_within =
            self.held.len() + new().count() <= bounds.objects && self.bytes + bytes <= bounds.bytes;
        is_within || self.subjects.is_empty()
    }

    fn add(&mut self, subject: usize, needed: BTreeSet<usize>, whole: &Whole<'_>) {
        self.subjects.push(subject);
        for number in needed {
            if self.held.insert(number) {
                self.bytes += whole.sizes[number];
            }
        }
    }

    fn finish(self) -> Part {
        let mut beside = self.held;
        for subject in &self.subjects {
            beside.remove(subject);
        }
        Part { subjects: self.subjects, beside }
    }
}

struct Whole<'r> {
    resources: &'r [Resource],
    numbers: BTreeMap<(Kind, &'r str, &'r str), usize>,
    /// Nothing names these, and yet what they say counts for others: rules, and models by their aliases.
    unnamed: BTreeSet<usize>,
    /// How long each is when it is sent.
    sizes: Vec<usize>,
}

impl<'r> Whole<'r> {
    fn of(resources: &'r [Resource]) -> Self {
        let place = |it: &'r Resource| (it.kind(), it.metadata.namespace.as_str(), it.metadata.name.as_str());
        let numbered = resources.iter().enumerate();
        Self {
            resources,
            numbers: numbered.clone().map(|(number, it)| (place(it), number)).collect(),
            unnamed: numbered.filter(|(_, it)| counts_unnamed(&it.spec)).map(|(number, _)| number).collect(),
            sizes: resources.iter().map(size).collect(),
        }
    }

    /// It, and all that it refers to, and what those refer to.
    fn needed(&self, number: usize) -> BTreeSet<usize> {
        let mut needed = BTreeSet::new();
        let mut open: Vec<usize> = self.unnamed.iter().copied().chain([number]).collect();
        while let Some(number) = open.pop() {
            if needed.insert(number) {
                open.extend(self.named_by(number));
            }
        }
        needed
    }

    fn named_by(&self, number: usize) -> Vec<usize> {
        let resource = &self.resources[number];
        let own = &resource.metadata.namespace;
        let number_of = |named: &ostler_spec::Named<'_>| {
            let place = (named.kind, named.reference.namespace_or(own), named.reference.name.as_str());
            self.numbers.get(&place).copied()
        };
        resource.references().iter().filter_map(number_of).collect()
    }
}

fn counts_unnamed(spec: &Spec) -> bool {
    match spec {
        Spec::ToolPermission(_) | Spec::AgentPolicy(_) | Spec::Quota(_) => true,
        Spec::ModelEndpoint(endpoint) => !endpoint.aliases.is_empty(),
        _ => false,
    }
}

fn size(resource: &Resource) -> usize {
    serde_json::to_vec(resource).map_or(0, |bytes| bytes.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources() -> Vec<Resource> {
        let mut text = "kind: ModelEndpoint\nmetadata: {name: m}\nspec: {default_model: x}\n---\n\
                        kind: AgentPolicy\nmetadata: {name: p}\nspec: {target_agents: [a9]}\n"
            .to_owned();
        for number in 0..10 {
            let agent = format!("kind: Agent\nmetadata: {{name: a{number}}}\nspec: {{model_ref: m}}\n");
            text.push_str(&format!("---\n{agent}"));
        }
        text.push_str("---\nkind: AgentSystem\nmetadata: {name: s}\nspec: {agents: [a0, a9]}\n");
        ostler_spec::parse("x", &text).unwrap()
    }

    fn check(bounds: Bounds, expected: &[(&[usize], &[usize])]) {
        let parts = divide(&resources(), bounds);
        let plain: Vec<(Vec<usize>, Vec<usize>)> =
            parts.iter().map(|part| (part.subjects.clone(), part.beside.iter().copied().collect())).collect();
        let expected: Vec<_> = expected.iter().map(|(one, other)| (one.to_vec(), other.to_vec())).collect();
        assert_eq!(plain, expected);
    }

    #[test]
    fn what_is_little_stays_together() {
        check(BOUNDS, &[(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], &[])]);
        assert_eq!(divide(&[], BOUNDS), []);
    }

    #[test]
    fn each_part_brings_what_it_refers_to() {
        let bounds = Bounds { objects: 7, bytes: usize::MAX };
        check(
            bounds,
            &[(&[0, 1, 2, 3, 4, 5, 6], &[]), (&[7, 8, 9, 10, 11], &[0, 1]), (&[12], &[0, 1, 2, 11])],
        );
    }

    #[test]
    fn bytes_count_too_and_nothing_is_left_out() {
        let all = resources();
        let bounds = Bounds { objects: usize::MAX, bytes: 1 };
        let parts = divide(&all, bounds);
        assert_eq!(parts.len(), all.len(), "each by itself");
        assert!(parts.iter().all(|part| part.beside.contains(&1) || part.subjects == [1]), "{parts:?}");
    }
}
