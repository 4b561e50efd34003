#ifndef SIMHCA_VERBS_SHIM_DRIVER_ACKNOWLEDGED_H_
#define SIMHCA_VERBS_SHIM_DRIVER_ACKNOWLEDGED_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace simhca::driver {

// Events that an application has taken must be acknowledged before their object goes away (man
// ibv_ack_cq_events, ibv_get_async_event).  The counters of acknowledgements, their mutex and
// condition variable are those of the object's public structure.

template <typename Public>
void InitAcknowledgements(Public* object) {
  pthread_mutex_init(&object->mutex, nullptr);
  pthread_cond_init(&object->cond, nullptr);
}

// Adds `count` to `completed`, a member of `object`.
template <typename Public>
void Acknowledge(Public* object, uint32_t& completed, uint32_t count) {
  pthread_mutex_lock(&object->mutex);
  completed += count;
  pthread_cond_broadcast(&object->cond);
  pthread_mutex_unlock(&object->mutex);
}

// Waits until all `taken` events are acknowledged.  Called when no more can be taken.
template <typename Public>
void AwaitAcknowledgements(Public* object, const uint32_t& completed,
                           const std::atomic<uint32_t>& taken) {
  pthread_mutex_lock(&object->mutex);
  while (static_cast<int32_t>(taken.load(std::memory_order_relaxed) - completed) > 0) {
    pthread_cond_wait(&object->cond, &object->mutex);
  }
  pthread_mutex_unlock(&object->mutex);
}

}  // namespace simhca::driver

#endif  // SIMHCA_VERBS_SHIM_DRIVER_ACKNOWLEDGED_H_
