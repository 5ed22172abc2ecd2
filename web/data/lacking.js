// Whether an answer lacks what the server is still summing up. Says nothing.

/** @typedef {{rollups_lack?: Record<string, any>}} Answer */

/**
 * Tells whether one of some answers may lack something.
 * @param {...(Answer | null | undefined)} answers
 */
export function isLacking(...answers) {
  return answers.some((it) => it?.rollups_lack !== undefined);
}
