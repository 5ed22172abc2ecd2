//! Annotations: kept under their time, found by a range and by what they are about, replaced and deleted for good.

use domain::{Annotated, Annotation, TimeRange};
use table::{AnnotationQuery, Page};

use super::Ports;
use crate::given::{always, annotation, answer, at, label, range};

const HOUR: i64 = 3_600_000;

/// An annotation that ends.
fn until(from: i64, to: i64, device: &str) -> Annotation {
    Annotation { to: Some(at(to)), ..annotation(from, device) }
}

fn about(text: &str, from: i64) -> Annotation {
    Annotation { about: text.parse().expect("what it is about"), ..annotation(from, text) }
}

async fn put(store: &impl Ports, all: &[Annotation]) {
    for annotation in all {
        answer!(store.put_annotation(annotation));
    }
}

async fn page(store: &impl Ports, query: &AnnotationQuery) -> Page<Annotation> {
    answer!(store.annotations(query))
}

async fn found(store: &impl Ports, range: TimeRange, about: Option<&Annotated>) -> Vec<Annotation> {
    let query = AnnotationQuery { range, about: about.cloned(), after: None, limit: 100 };
    page(store, &query).await.items
}

pub(super) async fn annotations_of_a_range_are_those_that_overlap_it(store: &impl Ports) {
    let month = 31 * 24 * HOUR;
    let [long, short] = [until(-month, HOUR, "d"), until(-2 * HOUR, -HOUR, "d")];
    let [before, at_begin, at_end] = [-1, 0, HOUR].map(|from| annotation(from, "d"));
    put(store, &[at_end.clone(), at_begin.clone(), long.clone(), before, short]).await;
    assert_eq!(found(store, range(0, HOUR), None).await, [long.clone(), at_begin]);
    assert_eq!(found(store, range(HOUR, 2 * HOUR), None).await, [at_end]);
    assert_eq!(found(store, range(-month, 1 - month), None).await, [long]);
    assert_eq!(found(store, always(), None).await.len(), 5);
}

pub(super) async fn annotations_are_found_by_what_they_are_about(store: &impl Ports) {
    let subjects = ["device:a", "room:a", "home:a", "device:b", "device:room:a"];
    let all: Vec<Annotation> =
        (0..).zip(subjects).map(|(from, subject)| about(subject, from)).collect();
    put(store, &all).await;
    for one in &all {
        let of_it = found(store, always(), Some(&one.about)).await;
        assert_eq!(of_it, std::slice::from_ref(one));
    }
    assert_eq!(found(store, always(), None).await, all);
}

pub(super) async fn annotations_are_walked_page_by_page(store: &impl Ports) {
    let all: Vec<Annotation> =
        (0..20).map(|n| annotation(n / 3, if n % 4 == 0 { "a" } else { "b" })).collect();
    // Three of a time differ in what is behind the time.
    let named = |(n, it): (usize, Annotation)| Annotation {
        id: format!("{}-{n:02}", it.id.at()).parse().expect("an id"),
        ..it
    };
    let all: Vec<Annotation> = all.into_iter().enumerate().map(named).collect();
    put(store, &all).await;
    for device in [None, Some("a"), Some("b")] {
        let about = device.map(|id| annotation(0, id).about);
        let wanted = |it: &&Annotation| about.as_ref().is_none_or(|about| *about == it.about);
        let expected: Vec<Annotation> = all.iter().filter(wanted).cloned().collect();
        for limit in [1, 3, 5, 20] {
            let mut walked = Vec::new();
            let mut after = None;
            loop {
                let query = AnnotationQuery { range: always(), about: about.clone(), after, limit };
                let Page { items: annotations, has_more } = page(store, &query).await;
                assert!(annotations.len() <= limit);
                walked.extend(annotations);
                if !has_more {
                    break;
                }
                after = walked.last().map(|it: &Annotation| it.id.clone());
            }
            assert_eq!(walked, expected, "{device:?} by {limit}");
        }
    }
}

pub(super) async fn an_annotation_is_replaced_and_deleted_for_good(store: &impl Ports) {
    let first = until(0, HOUR, "d");
    // Nothing of the first is left, not even its end.
    let second = Annotation { to: None, text: label("Oven"), ..about("home:h", 0) };
    let second = Annotation { id: first.id.clone(), ..second };
    for (annotation, times) in [(&first, 2), (&second, 2)] {
        for _ in 0..times {
            put(store, std::slice::from_ref(annotation)).await;
            assert_eq!(found(store, always(), None).await, std::slice::from_ref(annotation));
        }
    }
    for was_there in [true, false] {
        assert_eq!(answer!(store.delete_annotation(&first.id)), was_there);
        assert_eq!(found(store, always(), None).await, []);
    }
}
