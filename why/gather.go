// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import ctrl "sigs.k8s.io/controller-runtime"

// RecorderOf returns the recorder whose NewClient a manager uses. It is nil, which means off, if there is
// none.
func RecorderOf(m ctrl.Manager) *Recorder {
	recorded, _ := m.GetClient().(interface{ recordedBy() *Recorder })
	if recorded == nil {
		return nil
	}
	return recorded.recordedBy()
}

func (c *recordingClient) recordedBy() *Recorder { return c.recorder }

// Gather stores a record of another recorder, for example from another process, and sends it to followers.
// The caller gives it a unique ID that is close to the number of records before it, and must not change the
// record later. In the summary, it counts only as a kept record.
func (r *Recorder) Gather(record *Record) {
	if r == nil {
		return
	}
	object := &record.Object
	r.readSettled(func() {
		r.lastID.Store(max(r.lastID.Load(), record.ID))
		r.publish(objectKey{record.Controller, object.Group, object.Kind, object.Namespace, object.Name}, record)
	})
}
