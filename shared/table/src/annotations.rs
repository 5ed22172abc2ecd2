//! What is asked of annotations, and their ports. Reads nothing itself.

use std::future::Future;

use domain::{Annotated, Annotation, AnnotationId, TimeRange};

use crate::{Action, Invocation, Permission, StoreResult, Target};

/// What is asked of annotations: those that overlap a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationQuery {
    /// The range.
    pub range: TimeRange,
    /// What they are about, if that matters.
    pub about: Option<Annotated>,
    /// The annotation behind which the page begins.
    pub after: Option<AnnotationId>,
    /// The largest number of annotations.
    pub limit: usize,
}

impl AnnotationQuery {
    /// Whether an annotation is one of them.
    #[must_use]
    pub fn wants(&self, annotation: &Annotation) -> bool {
        let is_about = self.about.as_ref().is_none_or(|about| *about == annotation.about);
        is_about && annotation.overlaps(self.range)
    }
}

/// Some annotations in the order of their ids, which is that of their times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnnotationPage {
    /// The annotations.
    pub annotations: Vec<Annotation>,
    /// Whether there are more behind them.
    pub has_more: bool,
}

/// Pattern 13: the annotations of a range.
pub trait ReadAnnotations: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] = &[(Action::Query, Target::Annotations)];

    /// A page of annotations, as they are this moment.
    fn annotations(
        &self,
        query: &AnnotationQuery,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<AnnotationPage>> + Send;
}

/// A person's edits of annotations. Done twice, they leave what the first time left.
pub trait EditAnnotations: Send + Sync {
    /// What the port must be permitted.
    const PERMISSIONS: &'static [Permission] =
        &[(Action::UpdateItem, Target::Annotations), (Action::DeleteItem, Target::Annotations)];

    /// Keeps an annotation; it replaces the one of the same id.
    fn put_annotation(
        &self,
        annotation: &Annotation,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<()>> + Send;
    /// Deletes an annotation; returns whether there was one.
    fn delete_annotation(
        &self,
        id: &AnnotationId,
        invocation: &Invocation,
    ) -> impl Future<Output = StoreResult<bool>> + Send;
}
