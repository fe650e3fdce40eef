// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import ctrl "sigs.k8s.io/controller-runtime"

// RecorderOf returns the recorder whose NewClient a manager was given, so that controllers find it without being told. It
// is nil, which means off, if there is none.
func RecorderOf(m ctrl.Manager) *Recorder {
	recorded, _ := m.GetClient().(interface{ recordedBy() *Recorder })
	if recorded == nil {
		return nil
	}
	return recorded.recordedBy()
}

func (c *recordingClient) recordedBy() *Recorder { return c.recorder }

// Gather keeps a record that another recorder made, such as one in another process, and tells those who follow. The caller gives
// it an ID that no other record has had, and that is about as many as there were before it; it is not changed
// any more then. It counts for nothing in the summary but what is kept.
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
